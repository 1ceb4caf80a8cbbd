// A hub among strangers: whatever they send, they are refused, and the job does not notice.
#include "runtime/bootstrap/hub.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "runtime/bootstrap/job.h"
#include "runtime/bootstrap/raw_rank.h"
#include "runtime/testing/descriptors.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::RawRank;

/// A job of `size` ranks, of which none has come.
struct TestJob {
  explicit TestJob(uint32_t size, std::chrono::milliseconds hello_time = 10s) : size(size) {
    fill_random(id.secret);
    hub = Hub::start({.addresses = {Address::loopback(0)},
                      .secret = id.secret,
                      .size = size,
                      .timeout = 20s,
                      .hello_time = hello_time},
                     diagnostics);
    REQUIRE(hub);
    id.address = hub->address();
  }

  /// All ranks come, each a thread, and go through a step.
  bool works() {
    std::atomic<uint32_t> good = 0;
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        Diagnostics errors;
        const auto bootstrap = join_job(id, r, size, 20s, nullptr, errors);
        if (bootstrap && bootstrap->barrier("step", errors)) ++good;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return good == size;
  }

  const uint32_t size;
  Diagnostics diagnostics;
  UniqueId id{};
  std::unique_ptr<Hub> hub;
};

TEST_CASE("noise is refused at once") {
  TestJob job(2);
  std::vector<wire::Bytes> noises = {
      {'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P', '/', '1', '.', '1', '\r', '\n'},
      wire::Bytes(16, 0),
      wire::Bytes(16, 0xff),
      wire::Bytes(100000, 0x41),
      {2, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f},  // a hello of 2 GiB
      wire::frame(wire::FrameKind::goodbye),
      wire::frame(wire::FrameKind::heartbeat),
      wire::frame(wire::Gather{.step = 0, .name = "x", .data = {}}),
      wire::frame(wire::Welcome{}),
  };
  for (const wire::Bytes& noise : noises) {
    RawRank stranger(job.id);
    REQUIRE(stranger.connected());
    stranger.send(noise);
    CHECK(stranger.ended());
  }
  CHECK(job.works());
}

TEST_CASE("who does not know the secret is refused, and told why") {
  TestJob job(2);
  UniqueId wrong = job.id;
  wrong.secret[0] ^= 1;
  RawRank stranger(wrong);
  stranger.send(stranger.hello(0, 2));
  CHECK(stranger.receive() == wire::FrameKind::refused);
  CHECK(wire::read_refused(stranger.payload())->code == wire::Refusal::wrong_secret);
  CHECK(stranger.ended());

  Diagnostics diagnostics;
  CHECK_FALSE(join_job(wrong, 1, 2, 20s, nullptr, diagnostics));
  CHECK(diagnostics.all().front().code == "bootstrap-refused");
  CHECK(diagnostics.all().front().message ==
        fmt::format("the bootstrap at {} refuses rank 1: its secret is another job's",
                    job.id.address.text()));
  CHECK(job.works());
}

TEST_CASE("a proof is good for one connection") {
  TestJob job(2);
  RawRank honest(job.id), thief(job.id);
  const wire::Bytes hello = honest.hello(0, 2);
  REQUIRE(thief.receive() == wire::FrameKind::challenge);
  thief.send(hello);
  CHECK(thief.receive() == wire::FrameKind::refused);
  CHECK(job.works());
}

TEST_CASE("ranks that do not belong to the job are refused, and told why") {
  TestJob job(2);
  const auto refusal = [&job](uint32_t rank, uint32_t size) {
    Diagnostics diagnostics;
    CHECK_FALSE(join_job(job.id, rank, size, 20s, nullptr, diagnostics));
    return diagnostics.all().front().message;
  };
  const std::string head = fmt::format("the bootstrap at {} refuses rank ", job.id.address.text());
  CHECK(refusal(0, 3) == head + fmt::format("0: the job has 2 ranks, rank 0 (process {} on "
                                            "127.0.0.1) says 3",
                                            ::getpid()));
  CHECK(refusal(5, 2) == head + "5: there is no rank 5 in a job of 2 ranks");
  {
    RawRank first(job.id);
    first.send(first.hello(1, 2));
    REQUIRE(first.receive() == wire::FrameKind::welcome);
    CHECK(refusal(1, 2).starts_with(head + "1: rank 1 has come already (process "));
    // The first one is still there.
    RawRank second(job.id);
    second.send(second.hello(0, 2));
    CHECK(second.receive() == wire::FrameKind::welcome);
    CHECK(first.receive() == wire::FrameKind::ready);
  }
}

TEST_CASE("connections that say nothing do not hold up the job") {
  TestJob job(4, 300ms);
  std::vector<std::unique_ptr<RawRank>> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(std::make_unique<RawRank>(job.id));
  RawRank slow(job.id);
  const wire::Bytes hello = slow.hello(0, 4);
  slow.send(hello, 20);
  CHECK(silent.front()->ended());  // its time is over
  CHECK(slow.ended());
  silent.push_back(std::make_unique<RawRank>(job.id));
  CHECK(job.works());
}

TEST_CASE("a flood of connections pushes out its own oldest") {
  TestJob job(2);
  std::vector<std::unique_ptr<RawRank>> flood;
  for (int i = 0; i < 300; ++i) flood.push_back(std::make_unique<RawRank>(job.id));
  CHECK(flood.front()->ended());
  CHECK(job.works());
}

TEST_CASE("a refused connection that goes on sending takes no memory") {
  TestJob job(2, 500ms);
  UniqueId wrong = job.id;
  wrong.secret[0] ^= 1;
  RawRank stranger(wrong);
  stranger.send(stranger.hello(0, 2));
  CHECK(stranger.receive() == wire::FrameKind::refused);
  const wire::Bytes noise(1 << 20, 1);
  for (int i = 0; i < 64 && stranger.send(noise); ++i) {
  }
  CHECK(job.works());
}

TEST_CASE("a rank that sends what no rank sends ends the job, by name") {
  TestJob job(2);
  RawRank rogue(job.id);
  rogue.send(rogue.hello(1, 2));
  REQUIRE(rogue.receive() == wire::FrameKind::welcome);
  Diagnostics errors;
  std::thread other([&] {
    const auto bootstrap = join_job(job.id, 0, 2, 20s, nullptr, errors);
    if (bootstrap) bootstrap->barrier("step", errors);
  });
  REQUIRE(rogue.receive() == wire::FrameKind::ready);
  wire::Bytes endless = wire::frame(wire::FrameKind::heartbeat);
  endless[0] = static_cast<uint8_t>(wire::FrameKind::gather);
  endless[7] = 0x7f;  // two GiB
  rogue.send(endless);
  other.join();
  REQUIRE(errors.has_errors());
  CHECK(errors.all().front().code == "bootstrap-protocol");
  CHECK(errors.all().front().message.starts_with("rank 1 (process"));
}

TEST_CASE("a rank that dies with much to read takes nobody with it") {
  TestJob job(2);
  auto lazy = std::make_unique<RawRank>(job.id);
  RawRank other(job.id);
  const auto come = [](RawRank& rank, uint32_t number) {
    rank.send(rank.hello(number, 2));
    REQUIRE(rank.receive() == wire::FrameKind::welcome);
  };
  come(*lazy, 0);
  come(other, 1);
  const wire::Bytes data(Bootstrap::kMostBytes, 7);  // more than the system keeps for a reader
  const wire::Bytes gather = wire::frame(wire::Gather{.step = 0, .name = "x", .data = data});
  REQUIRE(lazy->send(gather));
  REQUIRE(other.receive() == wire::FrameKind::ready);
  REQUIRE(other.send(gather));
  REQUIRE(other.receive() == wire::FrameKind::gathered);
  lazy.reset();
  REQUIRE(other.receive() == wire::FrameKind::failed);
  CHECK(wire::read_failure(other.payload())->why.starts_with("rank 0 (process "));
}

TEST_CASE("a rank that falls silent counts as dead") {
  const UniqueId id = testing::spare_id();
  Diagnostics diagnostics;
  const auto hub = Hub::start({.addresses = {id.address},
                               .secret = id.secret,
                               .size = 2,
                               .timeout = 300ms,
                               .least_silence = 300ms},
                              diagnostics);
  REQUIRE(hub);
  RawRank silent(id);
  silent.send(silent.hello(0, 2));
  REQUIRE(silent.receive() == wire::FrameKind::welcome);
  CHECK(wire::read_welcome(silent.payload())->silence_ms == 300);
  const auto living = join_job(id, 1, 2, 5s, nullptr, diagnostics);
  REQUIRE(living);
  std::mutex mutex;
  std::condition_variable told;
  std::string why;
  living->on_failure([&](const std::string& text) {
    const std::lock_guard lock(mutex);
    why = text;
    told.notify_all();
  });
  std::unique_lock lock(mutex);
  told.wait_for(lock, 10s, [&] { return !why.empty(); });
  CHECK(why.find("rank 0 (process ") == 0);
  CHECK(why.find(") has died: it has been silent for 0.3") != std::string::npos);
}

TEST_CASE("once all ranks have come, the hub no longer listens") {
  TestJob job(1);
  Diagnostics diagnostics;
  const auto bootstrap = join_job(job.id, 0, 1, 20s, nullptr, diagnostics);
  REQUIRE(bootstrap);
  CHECK_FALSE(join_job(job.id, 0, 1, 200ms, nullptr, diagnostics));
  CHECK(diagnostics.all().front().message.find("Connection refused") != std::string::npos);
}

TEST_CASE("a hub that closes leaves no rank waiting") {
  TestJob job(2);
  Diagnostics diagnostics;
  std::thread closer([&] {
    std::this_thread::sleep_for(100ms);
    job.hub.reset();
  });
  CHECK_FALSE(join_job(job.id, 0, 2, 20s, nullptr, diagnostics));
  CHECK(diagnostics.all().front().code == "rank-left");
  closer.join();
}

TEST_CASE("a hub needs an address that is free") {
  TestJob job(1);
  Diagnostics diagnostics;
  CHECK_FALSE(Hub::start({.addresses = {job.id.address}, .timeout = 1s}, diagnostics));
  CHECK(diagnostics.all().front().message ==
        fmt::format("the bootstrap cannot listen at {}: Address already in use (98)",
                    job.id.address.text()));
  // It takes the next one that is free.
  const auto hub =
      Hub::start({.addresses = {job.id.address, Address::loopback(0)}, .timeout = 1s}, diagnostics);
  REQUIRE(hub);
  CHECK(hub->address().port() != job.id.address.port());
}

TEST_CASE("a hub needs a descriptor for each rank") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 100;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  Diagnostics diagnostics;
  const HubOptions options{.addresses = {Address::loopback(0)}, .size = 37, .timeout = 1s};
  const auto hub = Hub::start(options, diagnostics);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_FALSE(hub);
  REQUIRE(diagnostics.has_errors());
  CHECK(diagnostics.all().front().message ==
        "the bootstrap of 37 ranks needs 101 file descriptors in the process that runs its hub, "
        "which may have 100");
  CHECK(diagnostics.all().front().notes.front().text == "'ulimit -n 101' raises the limit");
  CHECK(Hub::start(options, diagnostics));
}

TEST_CASE("a thousand jobs leave no descriptor open") {
  const size_t before = testing::open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    TestJob job(2);
    if (i % 4 == 0) RawRank(job.id).send({1, 2, 3});
    REQUIRE(job.works());
  }
  CHECK(testing::open_descriptors() == before);
}

TEST_CASE("many ranks meet at one hub") {
  constexpr uint32_t kSize = 400;
  TestJob job(kSize);
  std::vector<std::unique_ptr<RawRank>> ranks;
  for (uint32_t r = 0; r < kSize; ++r) {
    ranks.push_back(std::make_unique<RawRank>(job.id));
    ranks[r]->send(ranks[r]->hello(r, kSize));
    REQUIRE(ranks[r]->receive() == wire::FrameKind::welcome);
  }
  const wire::Bytes data(100, 7);
  for (uint64_t step = 0; step < 3; ++step) {
    for (uint32_t r = 0; r < kSize; ++r) {
      if (step == 0) REQUIRE(ranks[r]->receive() == wire::FrameKind::ready);
      ranks[r]->send(wire::frame(wire::Gather{.step = step, .name = "x", .data = data}));
    }
    for (uint32_t r = 0; r < kSize; ++r) {
      REQUIRE(ranks[r]->receive() == wire::FrameKind::gathered);
      CHECK(wire::read_gathered(ranks[r]->payload())->all.size() == kSize);
    }
  }
}

}  // namespace
}  // namespace mscclc
