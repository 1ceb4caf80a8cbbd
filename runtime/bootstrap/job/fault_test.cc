// Ranks, or the hub's process, that die at each point of the bootstrap: all others end with an
// error that names the rank that died, in bounded time.
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>

#include "runtime/bootstrap/job/launcher.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/tcp/tcp_bootstrap.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::Processes;
using testing::RawRank;

constexpr uint32_t kSize = 4, kVictim = 2;
constexpr auto kBound = 200s;   // far beyond what is needed, for machines under load
constexpr int kLooks = 12'000;  // 5 ms apart: the same

LaunchedRank launch(const UniqueId& id, uint32_t rank, std::chrono::milliseconds timeout) {
  LaunchedRank out;
  out.rank = rank;
  out.size = kSize;
  out.where = Rendezvous::of(id);
  out.by_id = true;
  out.timeout = timeout;
  out.silence = 30s;
  return out;
}

/// What a rank saw that goes from step to step until there is an error: its exit code.
enum Seen : int { kOther = 1, kNamed = 42, kWithoutError = 2, kNotHeard = 3 };

/// `expected`: code of the error; `words`: what its message must contain. `late`: the hub may have
/// ended before this rank found it.
int run_until_error(const LaunchedRank& launch, const std::string& expected,
                    const std::string& words, bool late = false) {
  Diagnostics diagnostics;
  std::atomic<bool> heard = false;
  const auto bootstrap = make_bootstrap(launch, diagnostics);
  if (bootstrap) {
    bootstrap->on_failure([&heard](const std::string&) { heard = true; });
    std::vector<std::vector<uint8_t>> all;
    const std::vector<uint8_t> own(100000, 1);
    for (int i = 0; i < 1000 && bootstrap->all_gather(own, "step", all, diagnostics); ++i) {
    }
    // The error has ended all that follows, too.
    Diagnostics again;
    if (bootstrap->barrier("again", again)) return kOther;
    for (int i = 0; i < kLooks && !heard; ++i) std::this_thread::sleep_for(5ms);
    if (!heard) return kNotHeard;
  }
  if (!diagnostics.has_errors()) return kWithoutError;
  const Diagnostic& error = diagnostics.all().front();
  const auto says = [&error](const std::string& code, const std::string& text) {
    return error.code == code && error.message.find(text) != std::string::npos;
  };
  const bool named = says(expected, words) ||
                     (late && says("bootstrap-timeout", "cannot reach the bootstrap at 127.0.0.1"));
  if (!named) fmt::print(stderr, "rank {}: {}: {}\n", launch.rank, error.code, error.message);
  return named ? kNamed : kOther;
}

/// Where the victim stops.
enum class At {
  connect,
  connected,
  half_hello,
  welcomed,
  joined,
  ready,
  half_gather,
  given,
  between
};

/// The victim, which never comes back.
int die_at(At at, const UniqueId& id) {
  if (at == At::connect) return 0;
  RawRank rank(id);
  if (at == At::connected) return 0;
  const wire::Bytes hello = rank.hello(kVictim, kSize);
  if (at == At::half_hello) return rank.send(hello, hello.size() / 2) ? 0 : 1;
  rank.send(hello);
  if (!rank.welcomed()) return 1;
  if (at == At::welcomed) return 0;
  if (!rank.send(rank.sealed(wire::frame(wire::FrameKind::joined)))) return 1;
  if (at == At::joined) return 0;
  if (rank.receive() != wire::FrameKind::ready) return 1;
  if (at == At::ready) return 0;
  const wire::Bytes data(100000, 1);
  const wire::Bytes gather =
      rank.sealed(wire::frame(wire::Gather{.step = 0, .name = "step", .data = data}));
  if (at == At::half_gather) return rank.send(gather, gather.size() / 2) ? 0 : 1;
  if (!rank.send(gather)) return 1;
  if (at == At::given) return 0;
  return rank.receive() == wire::FrameKind::gathered ? 0 : 1;
}

/// A job whose victim stops somewhere.
struct Case {
  At at;
  std::string code, words;
  UniqueId id = testing::spare_id();

  void start(Processes& processes, std::chrono::milliseconds timeout) const {
    for (uint32_t r = 0; r < kSize; ++r) {
      processes.start([this, r, timeout] {
        if (r == kVictim) return die_at(at, id);
        return run_until_error(launch(id, r, timeout), code, words, at == At::joined);
      });
    }
  }
};

// The timeout is what ends the others: several jobs wait for it side by side.
TEST_CASE("a rank dies before it has come") {
  const std::string missing = "rank 2 did not reach the bootstrap within 3 s";
  std::vector<Case> cases;
  for (const At at : {At::connect, At::connected, At::half_hello, At::welcomed}) {
    cases.push_back({at, "bootstrap-timeout", missing});
  }
  Processes processes;
  for (const Case& c : cases) c.start(processes, 3s);
  for (size_t i = 0; i < processes.count(); ++i) {
    INFO("the victim stops at point " << static_cast<int>(cases[i / kSize].at));
    CHECK(processes.wait(i, kBound) == (i % kSize == kVictim ? 0 : kNamed));
  }
}

TEST_CASE("a rank dies at each point") {
  const Case c{GENERATE(At::joined, At::ready, At::half_gather, At::given, At::between),
               "rank-died", "rank 2 (process"};
  Processes processes;
  // Of the others one may not have come yet when the hub is gone.
  c.start(processes, c.at == At::joined ? 3s : 30s);
  INFO("the victim stops at point " << static_cast<int>(c.at));
  for (uint32_t r = 0; r < kSize; ++r) {
    CHECK(processes.wait(r, kBound) == (r == kVictim ? 0 : kNamed));
  }
}

TEST_CASE("a rank that is killed between two steps") {
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  for (uint32_t r = 0; r < kSize; ++r) {
    processes.start([&, r] {
      if (r != kVictim) return run_until_error(launch(id, r, 30s), "rank-died", "rank 2 (process");
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(launch(id, r, 30s), diagnostics);
      if (!bootstrap || !ready.give()) return 1;
      ::pause();
      return 1;
    });
  }
  REQUIRE(ready.take());
  processes.kill(kVictim);
  for (uint32_t r = 0; r < kSize; ++r) {
    CHECK(processes.wait(r, kBound) == (r == kVictim ? -SIGKILL : kNamed));
  }
}

TEST_CASE("the process that runs the hub is killed") {
  const bool before_all_have_come = GENERATE(false, true);
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  for (uint32_t r = 0; r < kSize; ++r) {
    processes.start([&, r] {
      if (r != 0) {
        return run_until_error(launch(id, r, before_all_have_come ? 3s : 30s), "rank-died",
                               "rank 0, which runs the bootstrap's hub", before_all_have_come);
      }
      if (before_all_have_come) {
        Diagnostics diagnostics;
        const auto hub = Hub::start({.addresses = {id.address},
                                     .secret = id.secret,
                                     .size = kSize,
                                     .rank = 0,
                                     .timeout = 30s},
                                    diagnostics);
        RawRank missing(id);  // rank 0 itself never says hello
        if (!hub || !ready.give()) return 1;
        ::pause();
      }
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(launch(id, r, 30s), diagnostics);
      if (!bootstrap || !ready.give()) return 1;
      ::pause();
      return 1;
    });
  }
  REQUIRE(ready.take());
  std::this_thread::sleep_for(300ms);  // the others are in the bootstrap, or in a step
  processes.kill(0);
  CHECK(processes.wait(0, kBound) == -SIGKILL);
  for (uint32_t r = 1; r < kSize; ++r) CHECK(processes.wait(r, kBound) == kNamed);
}

TEST_CASE("a process is killed while a child of it holds its connections") {
  for (const bool local : {true, false}) {
    for (const uint32_t victim : {0u, kVictim}) {
      INFO("local " << local << ", rank " << victim);
      UniqueId id = testing::spare_id();
      id.local = local;
      const auto launched = [&](uint32_t rank) {
        LaunchedRank out = launch(id, rank, 600s);
        out.silence = 600s;  // only the end of the process can show it
        return out;
      };
      const testing::Signal forked, done;
      testing::Processes processes;
      for (uint32_t r = 0; r < kSize; ++r) {
        processes.start([&, r] {
          if (r != victim)
            return run_until_error(launched(r), "rank-died", "its process has ended");
          Diagnostics diagnostics;
          const auto bootstrap = make_bootstrap(launched(r), diagnostics);
          if (!bootstrap) return 1;
          if (::fork() == 0) ::_exit(done.take() ? 0 : 1);
          if (!forked.give()) return 1;
          ::pause();
          return 0;
        });
      }
      REQUIRE(forked.take());
      processes.kill(victim);
      for (uint32_t r = 0; r < kSize; ++r) {
        CHECK(processes.wait(r, kBound) == (r == victim ? -SIGKILL : kNamed));
      }
      REQUIRE(done.give());
    }
  }
}

TEST_CASE("the process that runs the hub is stopped") {
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  processes.start([&] {
    Diagnostics diagnostics;
    const auto hub = Hub::start({.addresses = {id.address},
                                 .secret = id.secret,
                                 .size = 2,
                                 .timeout = 20s,
                                 .silence = 800ms},
                                diagnostics);
    ::pause();
    return hub ? 0 : 1;
  });
  for (uint32_t r = 0; r < 2; ++r) {
    processes.start([&, r] {
      LaunchedRank rank = launch(id, r, 10s);
      rank.size = 2;
      Diagnostics diagnostics;
      const auto bootstrap =
          join(rank.where, rank.rank, rank.size, rank.timeout, nullptr, diagnostics);
      std::atomic<bool> named = false;
      if (!bootstrap || !ready.give()) return 1;
      bootstrap->on_failure([&](const std::string& why) {
        named = why.find("the bootstrap's hub at 127.0.0.1:") == 0 &&
                why.find(" has been silent for ") != std::string::npos;
      });
      for (int i = 0; i < kLooks && !named; ++i) std::this_thread::sleep_for(5ms);
      return static_cast<int>(named ? kNamed : kNotHeard);
    });
  }
  for (int i = 0; i < 2; ++i) REQUIRE(ready.take());
  processes.kill(0, SIGSTOP);
  for (uint32_t r = 1; r <= 2; ++r) CHECK(processes.wait(r, kBound) == kNamed);
}

TEST_CASE("a rank that was stopped, and wakes, blames itself") {
  const uint32_t victim = GENERATE(0u, 1u);
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  for (uint32_t r = 0; r < 3; ++r) {
    processes.start([&, r] {
      LaunchedRank rank = launch(id, r, 600s);
      rank.size = 3;
      rank.silence = 3s;
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(rank, diagnostics);
      if (!bootstrap || !ready.give()) return 1;
      while (bootstrap->barrier("step", diagnostics)) std::this_thread::sleep_for(5ms);
      const std::string& why = diagnostics.all().front().message;
      const bool named = why.find(fmt::format("rank {}", victim)) == 0 &&
                         (r == victim) == (why.find("it was stopped, or its machine was, for ") !=
                                           std::string::npos);
      if (!named) fmt::print(stderr, "rank {}: {}\n", r, why);
      return static_cast<int>(named ? kNamed : kOther);
    });
  }
  for (int i = 0; i < 3; ++i) REQUIRE(ready.take());
  processes.kill(victim, SIGSTOP);
  for (uint32_t r = 0; r < 3; ++r) {
    if (r != victim) CHECK(processes.wait(r, kBound) == kNamed);
  }
  processes.kill(victim, SIGCONT);
  CHECK(processes.wait(victim, kBound) == kNamed);
}

TEST_CASE("no rank runs the hub") {
  const UniqueId id = testing::spare_id();
  Processes processes;
  processes.start([&] {
    return run_until_error(launch(id, 1, 300ms), "bootstrap-timeout",
                           fmt::format("rank 1 cannot reach the bootstrap at 127.0.0.1 port {} "
                                       "within 0.3 s: at 127.0.0.1:",
                                       id.address.port()));
  });
  CHECK(processes.wait(0, kBound) == kNamed);
}

/// All except the victim end with this error; `victim`: what that one does, 0 if all was well.
void check_named(std::chrono::milliseconds timeout, const std::string& code,
                 const std::string& words, const std::function<int(Bootstrap&)>& victim) {
  const UniqueId id = testing::spare_id();
  Processes processes;
  for (uint32_t r = 0; r < kSize; ++r) {
    processes.start([&, r] {
      const LaunchedRank rank = launch(id, r, timeout);
      if (r != kVictim) return run_until_error(rank, code, words);
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(rank, diagnostics);
      return bootstrap ? victim(*bootstrap) : 1;
    });
  }
  for (uint32_t r = 0; r < kSize; ++r) {
    CHECK(processes.wait(r, kBound) == (r == kVictim ? 0 : kNamed));
  }
}

TEST_CASE("a rank gives up") {
  check_named(30s, "rank-gave-up", ") has given up: no memory left", [](Bootstrap& bootstrap) {
    Diagnostics diagnostics;
    if (!bootstrap.barrier("step", diagnostics)) return 1;
    bootstrap.fail("no memory left");
    return bootstrap.barrier("after", diagnostics) ? 1 : 0;
  });
}

TEST_CASE("a rank is at another step") {
  check_named(30s, "call-differs", "'other'", [](Bootstrap& bootstrap) {
    Diagnostics diagnostics;
    if (bootstrap.barrier("other", diagnostics)) return 1;
    return diagnostics.all().front().code == "call-differs" ? 0 : 1;
  });
}

TEST_CASE("a rank that does not come to a step is named by all") {
  check_named(3s, "bootstrap-timeout", "rank 2 did not reach 'step' within 3 s",
              [](Bootstrap& bootstrap) {
                std::atomic<bool> heard = false;
                bootstrap.on_failure([&](const std::string&) { heard = true; });
                for (int i = 0; i < kLooks && !heard; ++i) std::this_thread::sleep_for(5ms);
                return heard ? 0 : 1;
              });
}

}  // namespace
}  // namespace mscclc
