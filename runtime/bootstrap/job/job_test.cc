// Jobs of processes and of threads that meet by a unique id.
#include "runtime/api/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/fd.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/log.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::kFarBeyond;
using testing::Processes;

using Bytes = std::vector<uint8_t>;

/// What rank `rank` gives at a step: of different length for each rank, none for rank 0.
Bytes given(uint32_t rank, uint32_t step) {
  return Bytes(rank * 1000 + (rank > 0 ? step : 0), static_cast<uint8_t>(rank * 7 + step));
}

/// Goes through some steps; 0: all was right.
int exchange(Bootstrap& bootstrap, uint32_t steps) {
  Diagnostics diagnostics;
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<Bytes> all;
    if (!bootstrap.all_gather(given(bootstrap.rank(), step), "exchange", all, diagnostics))
      return 2;
    if (all.size() != bootstrap.size()) return 3;
    for (uint32_t r = 0; r < all.size(); ++r) {
      if (all[r] != given(r, step)) return 4;
    }
  }
  return bootstrap.barrier("end", diagnostics) ? 0 : 5;
}

int run_rank(const UniqueId& id, uint32_t rank, uint32_t size, uint32_t steps,
             std::shared_ptr<Hub> hub = nullptr) {
  Diagnostics diagnostics;
  const auto bootstrap = join_job(id, rank, size, kFarBeyond, std::move(hub), diagnostics);
  if (!bootstrap) return 1;
  return exchange(*bootstrap, steps);
}

TEST_CASE("processes exchange bytes") {
  const uint32_t size = GENERATE(1, 2, 4, 8);
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  Processes processes;
  processes.start([&] {
    Diagnostics diagnostics;
    auto job = host_job({.size = size, .rank = 0, .one_machine = true, .timeout = kFarBeyond},
                        diagnostics);
    if (!job) return 1;
    for (uint32_t r = 1; r < size; ++r) {
      std::string text = job->id.text();
      text.resize(UniqueId::kMaxText);
      if (::write(pipe[1], text.data(), text.size()) < 0) return 1;
    }
    return run_rank(job->id, 0, size, 20, std::move(job->hub));
  });
  for (uint32_t r = 1; r < size; ++r) {
    processes.start([&, r] {
      char text[UniqueId::kMaxText];
      Diagnostics diagnostics;
      if (::read(pipe[0], text, sizeof text) != sizeof text) return 1;
      const auto id = UniqueId::parse(text, diagnostics);
      return id ? run_rank(*id, r, size, 20) : 1;
    });
  }
  for (uint32_t r = 0; r < size; ++r) CHECK(processes.wait(r, kFarBeyond) == 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("threads exchange bytes; the hub need not know how many ranks there are") {
  Diagnostics diagnostics;
  const auto job = host_job({.one_machine = true, .timeout = kFarBeyond}, diagnostics);
  REQUIRE(job);
  constexpr uint32_t kSize = 32;
  std::vector<int> results(kSize, -1);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kSize; ++r) {
    threads.emplace_back([&, r] { results[r] = run_rank(job->id, r, kSize, 50); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<int>(kSize, 0));
}

TEST_CASE("a job over IPv6") {
  const auto here = Address::parse("::1", 0);
  Diagnostics diagnostics;
  UniqueId id{};
  fill_random(id.secret);
  const auto hub = Hub::start(
      {.addresses = {*here}, .secret = id.secret, .size = 2, .timeout = kFarBeyond}, diagnostics);
  if (!hub) {
    WARN("this machine has no IPv6: " << diagnostics.all().front().message);
    return;
  }
  id.address = hub->address();
  CHECK(id.text().starts_with("mscclc1/::1/"));
  int other = -1;
  std::thread thread([&] { other = run_rank(id, 1, 2, 3); });
  CHECK(run_rank(id, 0, 2, 3) == 0);
  thread.join();
  CHECK(other == 0);
}

TEST_CASE("ranks of one machine need no port: their id has none") {
  Diagnostics diagnostics;
  auto job = host_job({.size = 2, .one_machine = true, .timeout = kFarBeyond}, diagnostics);
  REQUIRE(job);
  CHECK(job->id.text().starts_with("mscclc1/local/0/"));
  const auto id = UniqueId::parse(job->id.text(), diagnostics);
  REQUIRE(id);
  int other = -1;
  std::thread thread([&] { other = run_rank(*id, 1, 2, 3); });
  CHECK(run_rank(*id, 0, 2, 3) == 0);
  thread.join();
  CHECK(other == 0);
}

TEST_CASE("an id whose process has ended is an error at once") {
  Diagnostics diagnostics;
  const bool one_machine = GENERATE(false, true);
  auto job =
      host_job({.size = 2, .one_machine = one_machine, .interface = "=lo", .timeout = kFarBeyond},
               diagnostics);
  REQUIRE(job);
  const UniqueId id = job->id;
  job.reset();
  CHECK_FALSE(join_job(id, 1, 2, 60s, nullptr, diagnostics));
  CHECK(diagnostics.all().front().code == "bootstrap-gone");
  CHECK(diagnostics.all().front().message.starts_with("rank 1 finds nothing at "));
}

// The thread sanitizer allows no threads in children of a process with threads; the address
// sanitizer's allocator leaves a child the locks that its parent's threads held.
#if !defined(MSCCLC_TSAN) && !defined(MSCCLC_ASAN)
/// Nothing listens there.
bool connects_in_vain(const Address& address) {
  const Fd socket = begin_connect(address);
  pollfd polled{socket.get(), POLLOUT, 0};
  return ::poll(&polled, 1, 60'000) == 1 && connect_error(socket) == ECONNREFUSED;
}

TEST_CASE("a process makes an id, and its children are the ranks") {
  Diagnostics diagnostics;
  auto job = host_job({.size = 2, .interface = "=lo", .timeout = 60s}, diagnostics);
  REQUIRE(job);
  const UniqueId id = job->id;
  keep_hub(id, std::move(job->hub));
  testing::Signal go;
  Processes processes;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    processes.start([&, rank] {
      std::shared_ptr<Hub> hub = own_hub(id);
      if (hub != nullptr) return 10;
      const int result = run_rank(id, rank, 2, 3, std::move(hub));
      return go.take() ? result : 11;
    });
  }
  // Once all ranks have come nothing listens, though the children have the sockets, too.
  while (!connects_in_vain(id.address)) std::this_thread::sleep_for(2ms);
  REQUIRE(go.give());
  REQUIRE(go.give());
  for (size_t i = 0; i < 2; ++i) CHECK(processes.wait(i, 60s) == 0);
  CHECK(own_hub(id) != nullptr);  // here it is still this process's
  CHECK(own_hub(id) == nullptr);  // and now it has ended
}
#endif

TEST_CASE("a rank waits no longer than it says itself") {
  // By then it must have come itself.
  const auto is_right = [](int factor) {
    Diagnostics diagnostics;
    const auto job = host_job({.size = 2, .one_machine = true, .timeout = 600s}, diagnostics);
    REQUIRE(job);
    CHECK_FALSE(join_job(job->id, 0, 2, factor * 200ms, nullptr, diagnostics));
    CHECK(diagnostics.all().front().code == "bootstrap-timeout");
    return diagnostics.all().front().message ==
           fmt::format("rank 1 did not reach the bootstrap within {:g} s (1 of 2 did)",
                       0.2 * factor);
  };
  CHECK(testing::right_in_longer_times(is_right));
}

TEST_CASE("a rank that gives up before it has found the hub still reports it to the others") {
  Diagnostics diagnostics, its;
  const bool one_machine = GENERATE(false, true);
  const auto job = host_job({.size = 2, .one_machine = one_machine, .timeout = 60s}, diagnostics);
  REQUIRE(job);
  const auto at_once = [](Diagnostics& why) {
    why.error("aborted", {}, "not wanted any more");
    return true;
  };
  bool joined = true;
  std::chrono::steady_clock::duration took{};
  std::thread leaver([&] {
    const auto begun = std::chrono::steady_clock::now();
    joined = join_job(job->id, 1, 2, 60s, nullptr, its, at_once) != nullptr;
    took = std::chrono::steady_clock::now() - begun;
  });
  // It may be there for a moment.
  const auto bootstrap = join_job(job->id, 0, 2, 60s, nullptr, diagnostics);
  if (bootstrap != nullptr) CHECK_FALSE(bootstrap->barrier("step", diagnostics));
  leaver.join();
  CHECK_FALSE(joined);
  REQUIRE(diagnostics.has_errors());
  if (took < kAnnounceTime) {  // else it need not have found the hub
    CHECK(diagnostics.all().front().code == "rank-gave-up");
    CHECK_THAT(diagnostics.all().front().message, Catch::Contains("not wanted any more"));
  }
  REQUIRE(its.all().size() == 1);
  CHECK(its.all().front().code == "aborted");
}

TEST_CASE("an id has the address of the interface that was asked for") {
  Diagnostics diagnostics;
  const auto job = host_job({.interface = "=lo", .timeout = kFarBeyond}, diagnostics);
  REQUIRE(job);
  CHECK(job->id.address.host() == "127.0.0.1");
  CHECK(run_rank(job->id, 0, 1, 1) == 0);
  CHECK_FALSE(host_job({.interface = "=no-such-interface", .timeout = kFarBeyond}, diagnostics));
  CHECK(diagnostics.all().front().code == "no-interface");
}

TEST_CASE("two ids are never the same") {
  Diagnostics diagnostics;
  const auto a = host_job({.one_machine = true, .timeout = kFarBeyond}, diagnostics);
  const auto b = host_job({.one_machine = true, .timeout = kFarBeyond}, diagnostics);
  CHECK(a->id.secret != b->id.secret);
}

TEST_CASE("what is too long is not sent, and the job goes on") {
  Diagnostics diagnostics;
  const auto job = host_job({.size = 1, .one_machine = true, .timeout = kFarBeyond}, diagnostics);
  const auto bootstrap = join_job(job->id, 0, 1, kFarBeyond, nullptr, diagnostics);
  REQUIRE(bootstrap);
  std::vector<Bytes> all;
  CHECK_FALSE(bootstrap->all_gather(Bytes(Bootstrap::kMaxBytes + 1), "x", all, diagnostics));
  CHECK(diagnostics.all().front().code == "message-too-long");
  CHECK(diagnostics.all().front().message ==
        "rank 0 gives 16777217 bytes to a step, at most 16777216 are allowed");
  CHECK_FALSE(bootstrap->all_gather({}, std::string(wire::kMaxName + 1, 'n'), all, diagnostics));
  CHECK(diagnostics.all().back().message ==
        "rank 0 gives a step a name of 257 bytes, at most 256 are allowed");
  Diagnostics none;
  CHECK(bootstrap->all_gather(Bytes(Bootstrap::kMaxBytes, 3), "x", all, none));
  CHECK(all == std::vector<Bytes>{Bytes(Bootstrap::kMaxBytes, 3)});
}

/// Standard error is a pipe that is full, and that nothing reads, until it is let go.
class FullErrors {
 public:
  FullErrors() : before_(::dup(STDERR_FILENO)) {
    REQUIRE(::pipe2(ends_, O_CLOEXEC) == 0);
    const int flags = ::fcntl(ends_[1], F_GETFL);
    ::fcntl(ends_[1], F_SETFL, flags | O_NONBLOCK);
    const std::vector<char> noise(4096, 'A');
    while (::write(ends_[1], noise.data(), noise.size()) > 0) {
    }
    ::fcntl(ends_[1], F_SETFL, flags);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  FullErrors(const FullErrors&) = delete;
  FullErrors& operator=(const FullErrors&) = delete;
  ~FullErrors() { let_go(); }
  /// Ends the write that waits, too.
  void let_go() {
    if (before_ < 0) return;
    ::dup2(before_, STDERR_FILENO);
    for (int* const end : {&before_, &ends_[1], &ends_[0]}) ::close(std::exchange(*end, -1));
  }

 private:
  int before_;
  int ends_[2] = {-1, -1};
};

TEST_CASE("a failure comes to those who wait for it, though nothing reads the log") {
  const UniqueId id = testing::spare_id();
  Diagnostics diagnostics;
  const auto hub = testing::hub_of_two(id, 30s, diagnostics);
  REQUIRE(hub);
  std::optional<testing::RawRank> other(std::in_place, id);
  std::thread comes([&] { (void)other->come(1, 2); });
  std::promise<std::string> heard;
  const auto bootstrap = join_job(id, 0, 2, kFarBeyond, nullptr, diagnostics);
  comes.join();
  REQUIRE(bootstrap);
  reset_log();
  REQUIRE(start_log(Environment(Environment::Values{{"MSCCLC_DEBUG", "WARN"}}), diagnostics));
  FullErrors errors;
  bootstrap->on_failure([&heard](const std::string& why) { heard.set_value(why); });
  other.reset();  // it has died
  auto why = heard.get_future();
  const bool came = why.wait_for(kFarBeyond) == std::future_status::ready;
  errors.let_go();
  CHECK(came);
  reset_log();
}

TEST_CASE("a listener that is added after the failure is called at once") {
  Diagnostics diagnostics;
  const auto job = host_job({.size = 2, .one_machine = true, .timeout = kFarBeyond}, diagnostics);
  Diagnostics errors;  // of the other rank
  std::thread other([&] {
    const auto bootstrap = join_job(job->id, 1, 2, kFarBeyond, nullptr, errors);
    bootstrap->fail("enough");
    (void)bootstrap->barrier("x", errors);  // it has given up
  });
  const auto bootstrap = join_job(job->id, 0, 2, kFarBeyond, nullptr, diagnostics);
  REQUIRE(bootstrap);
  CHECK_FALSE(bootstrap->barrier("x", diagnostics));
  int count = 0;
  const auto count_if_expected = [&](const std::string& why) {
    count += why.ends_with(") has given up: enough") ? 1 : 100;
  };
  bootstrap->on_failure(count_if_expected);
  bootstrap->on_failure(count_if_expected);
  CHECK(count == 2);
  other.join();
  REQUIRE(errors.has_errors());
  CHECK(errors.all().front().message == "this rank has given up: enough");
}

}  // namespace
}  // namespace mscclc
