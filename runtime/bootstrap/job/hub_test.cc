// A hub among strangers: whatever they send, they are refused, and the job does not notice.
#include "runtime/bootstrap/tcp/hub.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "runtime/api/job.h"
#include "runtime/bootstrap/tcp/tcp_bootstrap.h"
#include "runtime/support/fixed_times.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/go_ahead.h"
#include "tests/helpers/runtime/log_file.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::kFarBeyond;
using testing::RawRank;

/// A job of `size` ranks, of which none has come.
struct TestJob {
  explicit TestJob(uint32_t size, std::chrono::milliseconds hello_time = kFarBeyond) : size(size) {
    fill_random(id.secret);
    hub = Hub::start({.addresses = {Address::loopback(0)},
                      .secret = id.secret,
                      .size = size,
                      .timeout = kFarBeyond,
                      .silence = kFarBeyond,
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
        const auto bootstrap = join_job(id, r, size, kFarBeyond, nullptr, errors);
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

TEST_CASE("a rank that does not know the secret is refused, and goes on trying") {
  TestJob job(2);
  UniqueId wrong = job.id;
  wrong.secret[0] ^= 1;
  RawRank stranger(wrong);
  stranger.send(stranger.hello(0, 2));
  CHECK(stranger.receive() == wire::FrameKind::refused);
  CHECK(wire::read_refused(stranger.payload())->code == wire::Refusal::wrong_secret);
  CHECK(stranger.ended());

  // It must have met the hub by then.
  const auto is_right = [&](int factor) {
    Diagnostics diagnostics;
    CHECK_FALSE(join_job(wrong, 1, 2, factor * 500ms, nullptr, diagnostics));
    CHECK(diagnostics.all().front().code == "bootstrap-timeout");
    return diagnostics.all().front().message ==
           fmt::format(
               "rank 1 cannot reach the bootstrap at 127.0.0.1 port {0} within {1:g} s: at "
               "127.0.0.1:{0}: it says that this rank's secret is another job's",
               job.id.address.port(), 0.5 * factor);
  };
  CHECK(testing::right_in_longer_times(is_right));
  CHECK(job.works());
}

// A process in between cannot put anything after a rank's hello.
TEST_CASE("what comes with a hello and is not sealed ends the connection at once") {
  TestJob job(1);
  RawRank rank(job.id);
  wire::Bytes sent = rank.hello(0, 1);
  wire::Sealer(wire::SessionKey{}).seal(wire::frame(wire::FrameKind::joined), sent);
  REQUIRE(rank.send(sent));
  CHECK(rank.ended());
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

TEST_CASE("a proof is good for the place that the rank has meant") {
  TestJob job(2);
  RawRank rank(job.id);
  Address elsewhere = job.id.address;
  elsewhere.set_port(1);
  rank.send(rank.hello(0, 2, elsewhere));
  REQUIRE(rank.receive() == wire::FrameKind::refused);
  CHECK(wire::read_refused(rank.payload())->code == wire::Refusal::other_ends);
  CHECK(job.works());
}

TEST_CASE("a rank that goes before it has joined is no rank that has died") {
  TestJob job(2);
  {
    RawRank hasty(job.id);
    hasty.send(hasty.hello(0, 2));
    REQUIRE(hasty.welcomed());
  }
  CHECK(job.works());
}

TEST_CASE("a rank that was welcome as the hub closed hears why") {
  TestJob job(2);
  RawRank rank(job.id);
  rank.send(rank.hello(0, 2));
  REQUIRE(rank.welcomed());
  job.hub->fail("another process is the same rank", true);
  const auto begun = std::chrono::steady_clock::now();
  std::thread closing([&] { job.hub.reset(); });
  const auto listens = [&] {
    Fd socket = begin_connect(job.id.address);
    pollfd polled{socket.get(), POLLOUT, 0};
    return socket.valid() && ::poll(&polled, 1, 1000) == 1 && connect_error(socket) == 0;
  };
  while (listens()) std::this_thread::sleep_for(5ms);
  const bool said = rank.say(wire::frame(wire::FrameKind::joined));
  const auto heard = rank.receive();
  // A rank that was slower need not be waited for.
  const bool waited_for = std::chrono::steady_clock::now() - begun < kAnnounceTime;
  closing.join();
  if (!waited_for && heard != wire::FrameKind::failed) return;
  CHECK(said);
  REQUIRE(heard == wire::FrameKind::failed);
  CHECK(wire::read_failure(rank.payload())->why == "another process is the same rank");
}

/// Rank 1 of two is there; another comes, and both hear the same, at once.
void check_misfit(uint32_t rank, uint32_t size, const std::string& expected) {
  TestJob job(2);
  RawRank first(job.id);
  REQUIRE(first.come(1, 2));
  Diagnostics diagnostics;  // whichever of the two the hub takes in first
  CHECK_FALSE(join_job(job.id, rank, size, kFarBeyond, nullptr, diagnostics));
  CHECK(diagnostics.all().front().code == "bootstrap-refused");
  const std::string process = fmt::format("process {} on 127.0.0.1", ::getpid());
  CHECK(diagnostics.all().front().message == fmt::format(fmt::runtime(expected), process));
  REQUIRE(first.receive() == wire::FrameKind::failed);
  CHECK(wire::read_failure(first.payload())->why == diagnostics.all().front().message);
}

TEST_CASE("a rank that does not belong to the job ends it at once, for all") {
  check_misfit(0, 3, "the job has 2 ranks, rank 0 ({}) says 3");
  check_misfit(5, 2, "there is no rank 5 ({}) in a job of 2 ranks");
  check_misfit(1, 2, "rank 1 ({0}) has joined twice: {0} says that it is the same rank");
}

TEST_CASE("ranks that come after a failure hear why, though the hub is closing") {
  TestJob job(3);
  RawRank first(job.id), twin(job.id);
  REQUIRE(first.come(0, 3));
  REQUIRE(twin.come(0, 3));
  REQUIRE(first.receive() == wire::FrameKind::failed);
  const auto begun = std::chrono::steady_clock::now();
  std::thread closer([&] { job.hub.reset(); });
  Diagnostics diagnostics;  // of the third process of the job
  CHECK_FALSE(join_job(job.id, 1, 3, kFarBeyond, nullptr, diagnostics));
  // One that was slower need not be waited for.
  const bool waited_for = std::chrono::steady_clock::now() - begun < kAnnounceTime;
  if (waited_for) CHECK(diagnostics.all().front().code == "bootstrap-refused");
  closer.join();
}

TEST_CASE("frames that were changed, repeated, dropped or reordered end the connection") {
  const std::string how = GENERATE("changed", "repeated", "dropped", "reordered");
  TestJob job(2);
  RawRank rank(job.id), other(job.id);
  REQUIRE(other.come(0, 2));
  REQUIRE(rank.come(1, 2, true));
  REQUIRE(rank.receive() == wire::FrameKind::ready);
  REQUIRE(other.receive() == wire::FrameKind::ready);
  const wire::Bytes one = rank.sealed(wire::frame(wire::FrameKind::heartbeat));
  wire::Bytes two = rank.sealed(wire::give_up_frame("forged"));
  if (how == "changed") two.back() ^= 1, rank.send(one), rank.send(two);
  if (how == "repeated") rank.send(one), rank.send(one);
  if (how == "dropped") rank.send(two);
  if (how == "reordered") rank.send(two), rank.send(one);
  REQUIRE(other.receive() == wire::FrameKind::failed);
  const auto failure = wire::read_failure(other.payload());
  CHECK(failure->kind == wire::FailureKind::protocol);
  const int record = how == "changed" || how == "repeated" ? 3 : 2;
  CHECK(failure->why ==
        fmt::format("rank 1 (process {} on 127.0.0.1): what came as record {} is not what the "
                    "other end has sent: it was changed, dropped, repeated or reordered on its way",
                    ::getpid(), record));
}

TEST_CASE("a hub at all addresses of its machine") {
  Diagnostics diagnostics;
  UniqueId id{.address = {}};
  fill_random(id.secret);
  const auto hub = Hub::start({.ports = {0}, .secret = id.secret, .size = 2, .timeout = kFarBeyond},
                              diagnostics);
  REQUIRE(hub);
  // One socket for both families: both ends must see the same addresses all the same.
  Rendezvous where{.host = "127.0.0.2", .ports = {hub->address().port()}, .secret = id.secret};
  std::unique_ptr<Bootstrap> one;
  std::thread thread([&] {
    Diagnostics problems;
    one = join(where, 1, 2, kFarBeyond, nullptr, problems);
  });
  Rendezvous here = where;
  here.host = "127.0.0.1";
  const auto bootstrap = join(here, 0, 2, kFarBeyond, nullptr, diagnostics);
  thread.join();
  CHECK((bootstrap && one));
}

TEST_CASE("a unix socket takes ranks without a port") {
  Diagnostics diagnostics;
  UniqueId id{.address = {}, .local = true};
  fill_random(id.secret);
  const auto hub = Hub::start(
      {.local = true, .secret = id.secret, .size = 2, .timeout = kFarBeyond}, diagnostics);
  REQUIRE(hub);
  CHECK(hub->address() == Address::local(wire::local_name(id.secret), 1));
  id.address = hub->address();
  RawRank rank(id);
  REQUIRE(rank.come(1, 2));
  const auto bootstrap = join_job(id, 0, 2, kFarBeyond, nullptr, diagnostics);
  CHECK(bootstrap);
  CHECK(rank.receive() == wire::FrameKind::ready);
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
  TestJob job(2);
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
  REQUIRE(rogue.come(1, 2));
  Diagnostics errors;
  std::thread other([&] {
    const auto bootstrap = join_job(job.id, 0, 2, kFarBeyond, nullptr, errors);
    if (bootstrap) (void)bootstrap->barrier("step", errors);
  });
  REQUIRE(rogue.receive() == wire::FrameKind::ready);
  wire::Bytes endless = wire::frame(wire::FrameKind::heartbeat);
  endless[0] = static_cast<uint8_t>(wire::FrameKind::gather);
  endless[7] = 0x7f;  // two GiB
  rogue.say(endless);
  other.join();
  REQUIRE(errors.has_errors());
  CHECK(errors.all().front().code == "bootstrap-protocol");
  CHECK(errors.all().front().message.starts_with("rank 1 (process"));
}

// What all gave would gather in the hub, step by step.
TEST_CASE("a rank that goes to the next step without reading the last ends the job, by name") {
  TestJob job(2);
  RawRank lazy(job.id), other(job.id);
  REQUIRE(lazy.come(0, 2));
  REQUIRE(other.come(1, 2));
  REQUIRE(other.receive() == wire::FrameKind::ready);
  const wire::Bytes data(Bootstrap::kMaxBytes, 7);  // more than the system keeps for a reader
  const auto gather = [&](uint64_t step, const wire::Bytes& bytes) {
    return wire::frame(wire::Gather{.step = step, .name = "x", .data = bytes});
  };
  REQUIRE(lazy.say(gather(0, {})));
  REQUIRE(other.say(gather(0, data)));
  REQUIRE(other.receive() == wire::FrameKind::gathered);
  REQUIRE(lazy.say(gather(1, {})));
  REQUIRE(other.say(gather(1, data)));
  REQUIRE(other.receive() == wire::FrameKind::failed);
  CHECK(
      wire::read_failure(other.payload())->why ==
      fmt::format("rank 0 (process {} on 127.0.0.1) has sent what no rank sends here", ::getpid()));
}

TEST_CASE("a rank that is cut off in the middle of a message is named") {
  const size_t before = testing::open_descriptors();
  const wire::Bytes messages[] = {
      wire::frame(wire::Gather{.step = 0, .name = "step", .data = wire::Bytes(100'000, 7)}),
      wire::give_up_frame("why"), wire::frame(WaitReport{{0}, "why"}),
      wire::frame(wire::FrameKind::goodbye)};
  for (const wire::Bytes& message : messages) {
    for (const size_t cut : {size_t{1}, size_t{4}, message.size() / 2, message.size() + 19}) {
      INFO(message.size() << " bytes, cut at " << cut);
      TestJob job(2);
      RawRank whole(job.id);
      REQUIRE(whole.come(0, 2));
      {
        RawRank half(job.id);
        REQUIRE(half.come(1, 2, true));
        REQUIRE(half.receive() == wire::FrameKind::ready);
        REQUIRE(half.send(half.sealed(message), cut));
      }
      REQUIRE(whole.receive() == wire::FrameKind::ready);
      REQUIRE(whole.receive() == wire::FrameKind::failed);
      CHECK_THAT(wire::read_failure(whole.payload())->why,
                 Catch::StartsWith("rank 1 (process ") && Catch::Contains(") has died: "));
    }
  }
  CHECK(testing::open_descriptors() == before);
}

TEST_CASE("a process that has proved itself and does not join does not stay, whatever it sends") {
  const UniqueId id = testing::spare_id();
  Diagnostics diagnostics;
  const auto hub = testing::hub_of_two(id, 1s, diagnostics);
  REQUIRE(hub);
  RawRank idle(id);
  REQUIRE(idle.send(idle.hello(0, 2)));
  REQUIRE(idle.welcomed());
  const wire::Bytes record = idle.sealed(wire::give_up_frame(std::string(1500, 'x')));
  size_t said = 0;
  while (said < 1000 && idle.send({record[said]})) {
    ++said;
    std::this_thread::sleep_for(100ms);
  }
  CHECK(said < 1000);
}

TEST_CASE("a rank that dies with much to read takes no other with it") {
  TestJob job(2);
  auto lazy = std::make_unique<RawRank>(job.id);
  RawRank other(job.id);
  REQUIRE(lazy->come(0, 2));
  REQUIRE(other.come(1, 2));
  const wire::Bytes data(Bootstrap::kMaxBytes, 7);  // more than the system keeps for a reader
  const wire::Bytes gather = wire::frame(wire::Gather{.step = 0, .name = "x", .data = data});
  REQUIRE(lazy->say(gather));
  REQUIRE(other.receive() == wire::FrameKind::ready);
  REQUIRE(other.say(gather));
  REQUIRE(other.receive() == wire::FrameKind::gathered);
  lazy.reset();
  REQUIRE(other.receive() == wire::FrameKind::failed);
  CHECK(wire::read_failure(other.payload())->why.starts_with("rank 0 (process "));
}

/// Why a job of two fails whose rank 0 falls silent; "": rank 1 was not there in time, or nothing
/// has come.
std::string why_silent_fails(std::chrono::milliseconds silence) {
  const UniqueId id = testing::spare_id();
  Diagnostics diagnostics;
  const auto hub = testing::hub_of_two(id, silence, diagnostics);
  REQUIRE(hub);
  // It waits for the other, whose silence begins when it has come.
  std::unique_ptr<Bootstrap> living;
  std::thread joining([&] { living = join_job(id, 1, 2, kFarBeyond, nullptr, diagnostics); });
  RawRank silent(id);
  const bool came = silent.come(0, 2);
  joining.join();
  if (!came || !living) return "";
  CHECK(silent.welcome().silence_ms == static_cast<uint64_t>(silence.count()));
  std::mutex mutex;
  std::condition_variable changed;
  std::string why;
  living->on_failure([&](const std::string& text) {
    const std::lock_guard lock(mutex);
    why = text;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait_for(lock, kFarBeyond, [&] { return !why.empty(); });
  return why;
}

TEST_CASE("a rank that falls silent counts as dead") {
  const auto is_right = [](int factor) {
    const std::string why = why_silent_fails(factor * 2s);
    return why.find("rank 0 (process ") == 0 &&
           why.find(") has died: it has been silent for ") != std::string::npos;
  };
  CHECK(testing::right_in_longer_times(is_right));
}

TEST_CASE("once all ranks have come, the hub no longer listens") {
  TestJob job(1);
  Diagnostics diagnostics;
  const auto bootstrap = join_job(job.id, 0, 1, kFarBeyond, nullptr, diagnostics);
  REQUIRE(bootstrap);
  CHECK_FALSE(join_job(job.id, 0, 1, 60s, nullptr, diagnostics));
  CHECK(diagnostics.all().front().code == "bootstrap-gone");
  CHECK(diagnostics.all().front().message ==
        fmt::format("rank 0 finds nothing at 127.0.0.1 port {0}, where its job's id was made: the "
                    "process that serves it has ended, or all ranks have joined already: at "
                    "127.0.0.1:{0}: Connection refused (111)",
                    job.id.address.port()));
}

TEST_CASE("a hub that closes leaves no rank waiting") {
  TestJob job(2);
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "TRACE"}, {"MSCCLC_DEBUG_SUBSYS", "BOOTSTRAP"}});
  testing::GoAhead found;  // the rank knows that this is its hub
  const auto look = [&](const std::string& line) {
    if (line.ends_with(": the job's hub")) found.give();
  };
  Diagnostics diagnostics;
  REQUIRE(set_log_sink(look, diagnostics));
  std::thread closer([&] {
    found.wait();
    job.hub.reset();
  });
  CHECK_FALSE(join_job(job.id, 0, 2, kFarBeyond, nullptr, diagnostics));
  found.give();  // it has not been, where that has failed
  closer.join();
  CHECK(diagnostics.all().front().code == "rank-left");
  Diagnostics none;
  CHECK(set_log_sink({}, none));
}

TEST_CASE("a hub whose process runs out of descriptors says so to the ranks that come") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  constexpr uint32_t kSize = 3;
  TestJob job(kSize);
  RawRank first(job.id);
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "BOOTSTRAP"}});
  REQUIRE(first.come(0, kSize));
  while (log.text().find("rank 0 has joined") == std::string::npos) std::this_thread::yield();
  // This process runs the hub and the ranks: the next rank has a socket, the hub has none for it,
  // and no stranger whose socket it could take.
  std::vector<Fd> rest;
  rlimit low = before;
  low.rlim_cur = testing::open_descriptors() + 32;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  for (Fd fd = make_waker(); fd.valid(); fd = make_waker()) rest.push_back(std::move(fd));
  const Fd none = begin_connect(job.id.address);
  rest.pop_back();
  const Fd late = begin_connect(job.id.address);
  const auto kind = first.receive();
  rest.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_FALSE(none.valid());
  REQUIRE(kind == wire::FrameKind::failed);
  CHECK(
      wire::read_failure(first.payload())->why ==
      "the process of the bootstrap's hub cannot continue: it has no room for another connection: "
      "Too many open files (24); the limit is 'ulimit -n'");
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
    REQUIRE(ranks[r]->come(r, kSize));
  }
  const wire::Bytes data(100, 7);
  for (uint64_t step = 0; step < 3; ++step) {
    for (uint32_t r = 0; r < kSize; ++r) {
      if (step == 0) REQUIRE(ranks[r]->receive() == wire::FrameKind::ready);
      ranks[r]->say(wire::frame(wire::Gather{.step = step, .name = "x", .data = data}));
    }
    for (uint32_t r = 0; r < kSize; ++r) {
      REQUIRE(ranks[r]->receive() == wire::FrameKind::gathered);
      CHECK(wire::read_gathered(ranks[r]->payload())->all.size() == kSize);
    }
  }
}

}  // namespace
}  // namespace mscclc
