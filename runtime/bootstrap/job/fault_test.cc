// Ranks, or the hub's process, that die at each point of the bootstrap: all others end with an
// error that names the rank that died, in bounded time.
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>

#include "runtime/bootstrap/job/launcher.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/tcp/tcp_bootstrap.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::kFarBeyond;
using testing::Processes;
using testing::RawRank;
using testing::right_in_longer_times;

constexpr uint32_t kSize = 4, kVictim = 2;
constexpr auto kBound = 500s;   // far beyond what is needed, for machines under load
constexpr int kLooks = 80'000;  // 5 ms apart: the same

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

/// Whether the victim of each job has ended like this, and all its others have seen the error.
bool all_named(Processes& processes, uint32_t victim = kVictim, int ended = 0) {
  bool all = true;
  for (size_t i = 0; i < processes.count(); ++i) {
    const int code = processes.wait(i, kBound);
    all &= code == (i % kSize == victim ? ended : kNamed);
  }
  return all;
}

// The timeout is what ends the others: several jobs wait for it side by side.
TEST_CASE("a rank dies before it has come") {
  const auto is_right = [](int factor) {
    const auto timeout = factor * 3s;
    const std::string missing =
        fmt::format("rank 2 did not reach the bootstrap within {} s", timeout.count());
    std::vector<Case> cases;
    for (const At at : {At::connect, At::connected, At::half_hello, At::welcomed}) {
      cases.push_back({at, "bootstrap-timeout", missing});
    }
    Processes processes;
    for (const Case& c : cases) c.start(processes, timeout);
    return all_named(processes);
  };
  CHECK(right_in_longer_times(is_right));
}

TEST_CASE("a rank dies at each point") {
  const At at = GENERATE(At::joined, At::ready, At::half_gather, At::given, At::between);
  INFO("the victim stops at point " << static_cast<int>(at));
  const auto is_right = [at](int factor) {
    const Case c{at, "rank-died", "rank 2 (process"};
    Processes processes;
    // Of the others one may not have come yet when the hub is gone.
    c.start(processes, at == At::joined ? factor * 3s : kFarBeyond);
    return all_named(processes);
  };
  CHECK(right_in_longer_times(is_right));
}

TEST_CASE("a rank that is killed between two steps") {
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  for (uint32_t r = 0; r < kSize; ++r) {
    processes.start([&, r] {
      const LaunchedRank launched = launch(id, r, kFarBeyond);
      if (r != kVictim) return run_until_error(launched, "rank-died", "rank 2 (process");
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(launched, diagnostics);
      if (!bootstrap || !ready.give()) return 1;
      ::pause();
      return 1;
    });
  }
  REQUIRE(ready.take());
  processes.kill(kVictim);
  CHECK(all_named(processes, kVictim, -SIGKILL));
}

/// `timeout`: of the others, where rank 0 never comes to its own hub.
bool named_when_hub_is_killed(bool before_all_have_come, std::chrono::milliseconds timeout) {
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  for (uint32_t r = 0; r < kSize; ++r) {
    processes.start([&, r] {
      if (r != 0) {
        return run_until_error(launch(id, r, timeout), "rank-died",
                               "rank 0, which runs the bootstrap's hub", before_all_have_come);
      }
      Diagnostics diagnostics;
      if (before_all_have_come) {
        const auto hub = Hub::start({.addresses = {id.address},
                                     .secret = id.secret,
                                     .size = kSize,
                                     .rank = 0,
                                     .timeout = kFarBeyond},
                                    diagnostics);
        RawRank missing(id);  // rank 0 itself never says hello
        if (ready.give() && hub) ::pause();
        return 1;
      }
      const auto bootstrap = make_bootstrap(launch(id, r, kFarBeyond), diagnostics);
      if (ready.give() && bootstrap) ::pause();
      return 1;
    });
  }
  if (!ready.take()) return false;
  std::this_thread::sleep_for(300ms);  // the others mostly are in the bootstrap, or in a step
  processes.kill(0);
  return all_named(processes, 0, -SIGKILL);
}

TEST_CASE("the process that runs the hub is killed") {
  CHECK(named_when_hub_is_killed(false, kFarBeyond));
  const auto is_right = [](int factor) { return named_when_hub_is_killed(true, factor * 3s); };
  CHECK(right_in_longer_times(is_right));
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

bool named_when_hub_is_stopped(std::chrono::milliseconds silence) {
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  processes.start([&] {
    Diagnostics diagnostics;
    const auto hub = testing::hub_of_two(id, silence, diagnostics);
    ::pause();
    return hub ? 0 : 1;
  });
  for (uint32_t r = 0; r < 2; ++r) {
    processes.start([&, r] {
      LaunchedRank rank = launch(id, r, kFarBeyond);
      rank.size = 2;
      Diagnostics diagnostics;
      const auto bootstrap =
          join(rank.where, rank.rank, rank.size, rank.timeout, nullptr, diagnostics);
      std::atomic<bool> heard = false, named = false;
      if (!ready.give() || !bootstrap) return 1;
      bootstrap->on_failure([&](const std::string& why) {
        named = why.find("the bootstrap's hub at 127.0.0.1:") == 0 &&
                why.find(" has been silent for ") != std::string::npos;
        heard = true;
      });
      for (int i = 0; i < kLooks && !heard; ++i) std::this_thread::sleep_for(5ms);
      return static_cast<int>(named ? kNamed : kNotHeard);
    });
  }
  for (int i = 0; i < 2; ++i) {
    if (!ready.take()) return false;
  }
  processes.kill(0, SIGSTOP);
  bool all = true;
  for (uint32_t r = 1; r <= 2; ++r) all &= processes.wait(r, kBound) == kNamed;
  return all;
}

TEST_CASE("the process that runs the hub is stopped") {
  const auto is_right = [](int factor) { return named_when_hub_is_stopped(factor * 800ms); };
  CHECK(right_in_longer_times(is_right));
}

bool stopped_blames_itself(uint32_t victim, std::chrono::milliseconds silence) {
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  Processes processes;
  for (uint32_t r = 0; r < 3; ++r) {
    processes.start([&, r] {
      LaunchedRank rank = launch(id, r, 600s);
      rank.size = 3;
      rank.silence = silence;
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(rank, diagnostics);
      if (!ready.give() || !bootstrap) return 1;
      while (bootstrap->barrier("step", diagnostics)) std::this_thread::sleep_for(5ms);
      const std::string& why = diagnostics.all().front().message;
      const bool named = why.find(fmt::format("rank {}", victim)) == 0 &&
                         (r == victim) == (why.find("it was stopped, or its machine was, for ") !=
                                           std::string::npos);
      if (!named) fmt::print(stderr, "rank {}: {}\n", r, why);
      return static_cast<int>(named ? kNamed : kOther);
    });
  }
  for (int i = 0; i < 3; ++i) {
    if (!ready.take()) return false;
  }
  processes.kill(victim, SIGSTOP);
  bool all = true;
  for (uint32_t r = 0; r < 3; ++r) {
    if (r != victim) all &= processes.wait(r, kBound) == kNamed;
  }
  processes.kill(victim, SIGCONT);
  return processes.wait(victim, kBound) == kNamed && all;
}

TEST_CASE("a rank that was stopped, and wakes, blames itself") {
  const uint32_t victim = GENERATE(0u, 1u);
  const auto is_right = [&](int factor) { return stopped_blames_itself(victim, factor * 3s); };
  CHECK(right_in_longer_times(is_right));
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

/// Whether all except the victim end with this error; `victim`: what that one does, 0 if all was
/// well.
bool is_named(std::chrono::milliseconds timeout, const std::string& code, const std::string& words,
              const std::function<int(Bootstrap&)>& victim) {
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
  return all_named(processes);
}

TEST_CASE("a rank gives up") {
  const auto give_up = [](Bootstrap& bootstrap) {
    Diagnostics diagnostics;
    if (!bootstrap.barrier("step", diagnostics)) return 1;
    bootstrap.fail("no memory left");
    return bootstrap.barrier("after", diagnostics) ? 1 : 0;
  };
  CHECK(is_named(kFarBeyond, "rank-gave-up", ") has given up: no memory left", give_up));
}

TEST_CASE("a rank is at another step") {
  const auto come_elsewhere = [](Bootstrap& bootstrap) {
    Diagnostics diagnostics;
    if (bootstrap.barrier("other", diagnostics)) return 1;
    return diagnostics.all().front().code == "call-differs" ? 0 : 1;
  };
  CHECK(is_named(kFarBeyond, "call-differs", "'other'", come_elsewhere));
}

TEST_CASE("a rank that does not come to a step is named by all") {
  const auto stay_away = [](Bootstrap& bootstrap) {
    std::atomic<bool> heard = false;
    bootstrap.on_failure([&](const std::string&) { heard = true; });
    for (int i = 0; i < kLooks && !heard; ++i) std::this_thread::sleep_for(5ms);
    return heard ? 0 : 1;
  };
  const auto is_right = [&](int factor) {
    const std::string words = fmt::format("rank 2 did not reach 'step' within {} s", 3 * factor);
    return is_named(factor * 3s, "bootstrap-timeout", words, stay_away);
  };
  CHECK(right_in_longer_times(is_right));
}

}  // namespace
}  // namespace mscclc
