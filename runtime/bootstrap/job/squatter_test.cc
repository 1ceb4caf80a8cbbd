// A stranger that listens where a job's ranks look for their hub first: whatever it does, the job
// meets, and nothing of it goes through the stranger.
//
// All cases run a few jobs. `squatter_test "[full]"` runs the number that
// docs/records/recorded_runs_jobs.md records.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/bootstrap/job/launcher.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::free_port;

constexpr uint32_t kSquattedSize = 3;

/// Sends all, or what can be sent before the other end goes.
bool send_all(const Fd& to, wire::Payload bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return true;
}

/// Listens at a port, and runs `serve` on a thread for each connection, until it is destroyed.
class Squatter {
 public:
  using Serve = std::function<void(const Fd& socket, const std::atomic<bool>& stop)>;
  Squatter(uint16_t port, Serve serve)
      : serve_(std::move(serve)), listener_(listen_on(Address::loopback(port))) {
    REQUIRE(listener_.valid());
    thread_ = std::thread([this] { accept(); });
  }
  ~Squatter() {
    stop_ = true;
    thread_.join();
  }
  uint16_t port() const { return local_port(listener_); }
  uint32_t met() const { return met_; }

 private:
  void accept() {
    std::vector<std::thread> serving;
    while (!stop_) {
      pollfd polled{listener_.get(), POLLIN, 0};
      if (::poll(&polled, 1, 5) != 1) continue;
      Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.valid()) continue;
      // A sender from which nothing reads would never end.
      const timeval limit{.tv_sec = 0, .tv_usec = 50'000};
      ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      ++met_;
      serving.emplace_back([this, own = std::move(socket)] { serve_(own, stop_); });
    }
    for (std::thread& thread : serving) thread.join();
  }

  const Serve serve_;
  const Fd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint32_t> met_ = 0;
  std::thread thread_;
};

/// Waits until the other end has gone, or the test has ended; reads all it says.
wire::Bytes listen_to(const Fd& socket, const std::atomic<bool>& stop, size_t most = SIZE_MAX) {
  wire::Bytes heard;
  uint8_t buffer[4096];
  while (!stop && heard.size() < most) {
    pollfd polled{socket.get(), POLLIN, 0};
    if (::poll(&polled, 1, 5) != 1) continue;
    const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got <= 0) break;
    heard.insert(heard.end(), buffer, buffer + got);
  }
  return heard;
}

/// Passes everything on between a rank and the real hub. `to_rank` collects what the hub says.
void relay(const Fd& rank, uint16_t hub_port, const std::atomic<bool>& stop,
           std::atomic<uint64_t>& to_rank) {
  Fd hub = begin_connect(Address::loopback(hub_port));
  if (!hub.valid()) return;
  uint8_t buffer[4096];
  while (!stop) {
    pollfd polled[2] = {{rank.get(), POLLIN, 0}, {hub.get(), POLLIN, 0}};
    if (::poll(polled, 2, 5) <= 0) continue;
    for (const bool down : {false, true}) {
      if (polled[down ? 1 : 0].revents == 0) continue;
      const ssize_t got = ::recv((down ? hub : rank).get(), buffer, sizeof buffer, 0);
      if (got <= 0) return;
      if (down) to_rank += static_cast<uint64_t>(got);
      if (!send_all(down ? rank : hub, {buffer, static_cast<size_t>(got)})) return;
    }
  }
}

/// Says what a hub would, with invalid proofs.
void forge(const Fd& rank, const std::atomic<bool>& stop) {
  const wire::KeyPair keys = wire::KeyPair::make();
  wire::Challenge challenge{.key = keys.open};
  fill_random(challenge.nonce);
  wire::Welcome welcome{.timeout_ms = 1, .silence_ms = 1, .hub_rank = 0};
  fill_random(welcome.proof);
  if (!send_all(rank, wire::frame(challenge)) || listen_to(rank, stop, 150).empty()) return;
  send_all(rank, wire::frame(welcome));
  send_all(rank, wire::frame(wire::FrameKind::ready));
  send_all(rank, wire::frame(wire::Failure{wire::FailureKind::gave_up, "forged"}));
  listen_to(rank, stop);
}

void refuse(const Fd& rank, const std::atomic<bool>& stop) {
  send_all(rank, wire::frame(wire::Challenge{}));
  listen_to(rank, stop, 150);
  send_all(rank, wire::frame(wire::Refused{wire::Refusal::wrong_secret}));
}

void challenge_and_wait(const Fd& rank, const std::atomic<bool>& stop) {
  send_all(rank, wire::frame(wire::Challenge{}));
  listen_to(rank, stop);
}

void flood(const Fd& rank, const std::atomic<bool>& stop) {
  const wire::Bytes noise(1 << 16, 'A');
  while (!stop && send_all(rank, noise)) {
  }
}

/// What a hub with this secret has said to another rank, word by word.
wire::Bytes recording(const Secret& secret) {
  Diagnostics diagnostics;
  UniqueId id{.address = {}, .secret = secret};
  const auto hub = Hub::start({.addresses = {Address::loopback(0)},
                               .secret = secret,
                               .size = kSquattedSize,
                               .timeout = 300s},
                              diagnostics);
  REQUIRE(hub);
  id.address = hub->address();
  testing::RawRank rank(id);
  rank.send(rank.hello(1, kSquattedSize));
  wire::Bytes said = wire::frame(rank.challenge());
  REQUIRE(rank.welcomed());
  const wire::Bytes welcome = wire::frame(rank.welcome());
  said.insert(said.end(), welcome.begin(), welcome.end());
  return said;
}

LaunchedRank launch_among_squatters(uint32_t rank, const Secret& secret,
                                    const std::vector<uint16_t>& ports,
                                    std::chrono::milliseconds timeout) {
  LaunchedRank out;
  out.rank = rank;
  out.size = kSquattedSize;
  out.where = {.host = "127.0.0.1", .ports = ports, .secret = secret};
  out.timeout = timeout;
  out.silence = 30s;
  return out;
}

/// A job of threads; how many of its ranks went through a step with the right bytes.
uint32_t run_job(const Secret& secret, const std::vector<uint16_t>& ports,
                 std::chrono::milliseconds timeout) {
  std::atomic<uint32_t> good = 0;
  std::vector<std::thread> ranks;
  std::mutex mutex;
  for (uint32_t r = 0; r < kSquattedSize; ++r) {
    ranks.emplace_back([&, r] {
      Diagnostics diagnostics;
      const auto bootstrap =
          make_bootstrap(launch_among_squatters(r, secret, ports, timeout), diagnostics);
      std::vector<std::vector<uint8_t>> all;
      const std::vector<uint8_t> own(1000, static_cast<uint8_t>(r));
      if (bootstrap && bootstrap->all_gather(own, "step", all, diagnostics)) {
        bool right = true;
        for (uint32_t i = 0; i < kSquattedSize; ++i) {
          right &= all[i] == std::vector<uint8_t>(1000, static_cast<uint8_t>(i));
        }
        good += right && bootstrap->barrier("end", diagnostics) ? 1 : 0;
      }
      const std::lock_guard lock(mutex);
      for (const Diagnostic& d : diagnostics.all()) {
        if (d.severity == Severity::error) fmt::print(stderr, "rank {}: {}\n", r, d.message);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return good;
}

struct Attack {
  const char* name;
  std::function<Squatter::Serve(const Secret& secret, uint16_t hub_port)> serve;
};

std::atomic<uint64_t> relayed = 0;

const Attack kAttacks[] = {
    {"relays",
     [](const Secret&, uint16_t hub) {
       return [hub](const Fd& s, const std::atomic<bool>& stop) { relay(s, hub, stop, relayed); };
     }},
    {"forges", [](const Secret&, uint16_t) { return forge; }},
    {"refuses", [](const Secret&, uint16_t) { return refuse; }},
    {"stays silent",
     [](const Secret&, uint16_t) {
       return [](const Fd& s, const std::atomic<bool>& stop) { listen_to(s, stop); };
     }},
    {"challenges and stays silent", [](const Secret&, uint16_t) { return challenge_and_wait; }},
    {"replays",
     [](const Secret& secret, uint16_t) {
       return [said = recording(secret)](const Fd& s, const std::atomic<bool>& stop) {
         send_all(s, said);
         listen_to(s, stop);
       };
     }},
    {"floods", [](const Secret&, uint16_t) { return flood; }},
    {"hangs up",
     [](const Secret&, uint16_t) { return [](const Fd&, const std::atomic<bool>&) {}; }},
};

/// One job with a squatter at the first port that ranks try.
void check_attack(const Attack& attack, std::chrono::milliseconds timeout) {
  INFO("the squatter " << attack.name);
  Secret secret;
  fill_random(secret);
  const uint16_t hub_port = free_port();
  relayed = 0;
  const Squatter squatter(0, attack.serve(secret, hub_port));
  CHECK(run_job(secret, {squatter.port(), hub_port}, timeout) == kSquattedSize);
  // Challenges and refusals at most, of each attempt of two ranks; never a word of the job.
  CHECK(relayed <= squatter.met() * (68 + 9));
}

TEST_CASE("a squatter at the first port breaks no job") {
  for (const Attack& attack : kAttacks) check_attack(attack, 300s);
}

TEST_CASE("300 jobs with a squatter meet within ten seconds each", "[.][full]") {
  std::map<std::string, int> jobs;
  auto longest = 0ms;
  for (int i = 0; i < 300; ++i) {
    const Attack& attack = kAttacks[static_cast<size_t>(i) % std::size(kAttacks)];
    const auto start = std::chrono::steady_clock::now();
    check_attack(attack, 10s);
    longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - start));
    ++jobs[attack.name];
  }
  for (const auto& [name, count] : jobs) fmt::print("{}: {} jobs\n", name, count);
  fmt::print("longest: {} ms\n", longest.count());
}

TEST_CASE("a flood of connections at the hub itself breaks no job") {
  Secret secret;
  fill_random(secret);
  const uint16_t port = free_port();
  std::atomic<bool> stop = false;
  std::thread flooder([&] {
    std::vector<Fd> open;
    while (!stop) {
      open.push_back(begin_connect(Address::loopback(port)));
      if (open.size() >= 300) open.erase(open.begin(), open.begin() + 100);
      std::this_thread::sleep_for(200us);
    }
  });
  CHECK(run_job(secret, {port}, 300s) == kSquattedSize);
  stop = true;
  flooder.join();
}

TEST_CASE("refused connections that stay open leave the hub room for a job") {
  Secret secret;
  fill_random(secret);
  const uint16_t port = free_port();
  const wire::Bytes forged = wire::frame(wire::Hello{.rank = 1, .size = kSquattedSize});
  std::atomic<bool> stop = false;
  std::thread flooder([&] {
    std::deque<Fd> open;
    while (!stop) {
      open.push_back(begin_connect(Address::loopback(port)));
      ::send(open.back().get(), forged.data(), forged.size(), MSG_NOSIGNAL);
      if (open.size() > 300) open.pop_front();
      std::this_thread::sleep_for(200us);
    }
  });
  CHECK(run_job(secret, {port}, 300s) == kSquattedSize);
  stop = true;
  flooder.join();
}

TEST_CASE("what was met at each place is in the error, and nothing else of it") {
  Secret secret;
  fill_random(secret);
  const Squatter one(0, refuse);
  const Squatter two(0, [](const Fd& s, const std::atomic<bool>& stop) {
    const std::string text = "\x1b[31mrefused: give up\r\n";
    send_all(s, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    listen_to(s, stop);
  });
  const uint16_t none = free_port();
  Diagnostics diagnostics;
  int seconds = 0;
  // All are to be met before the time is over.
  const auto are_met = [&](int factor) {
    diagnostics = Diagnostics();
    seconds = factor;
    const std::vector<uint16_t> ports = {one.port(), two.port(), none};
    CHECK_FALSE(make_bootstrap(launch_among_squatters(1, secret, ports, factor * 1s), diagnostics));
    const std::vector<Note>& notes = diagnostics.all().front().notes;
    return notes.size() == 3 && std::none_of(notes.begin(), notes.end(), [](const Note& note) {
             return note.text.ends_with(": no answer");
           });
  };
  CHECK(testing::right_in_longer_times(are_met));
  const Diagnostic& error = diagnostics.all().front();
  CHECK(error.code == "bootstrap-timeout");
  CHECK(error.message ==
        fmt::format("rank 1 cannot reach the bootstrap at 127.0.0.1 port {}, {}, {} within {} s",
                    one.port(), two.port(), none, seconds));
  REQUIRE(error.notes.size() == 3);
  CHECK(error.notes[0].text == fmt::format("at 127.0.0.1:{}: it says that this rank's secret is "
                                           "another job's",
                                           one.port()));
  CHECK(error.notes[1].text ==
        fmt::format("at 127.0.0.1:{}: what answers there is not a "
                    "bootstrap: it says '\\x1b[31mrefused: give up\\x0d\\x0a'",
                    two.port()));
  CHECK(error.notes[2].text == fmt::format("at 127.0.0.1:{}: Connection refused (111)", none));
}

TEST_CASE("another user at the unix socket is passed by") {
  if (::geteuid() != 0) {
    WARN("only root can be another user: not tried");
    return;
  }
  Secret secret;
  fill_random(secret);
  const testing::Signal ready;
  testing::Processes other;
  other.start([&] {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    const Fd first = listen_on(Address::local(wire::local_name(secret), 1));
    const Fd second = listen_on(Address::local(wire::local_name(secret), 2));
    if (!first.valid() || !second.valid() || !ready.give()) return 1;
    ::pause();
    return 0;
  });
  REQUIRE(ready.take());
  std::atomic<uint32_t> good = 0;
  std::vector<std::thread> ranks;
  for (uint32_t r = 0; r < kSquattedSize; ++r) {
    ranks.emplace_back([&, r] {
      LaunchedRank rank = launch_among_squatters(r, secret, {}, 300s);
      rank.where = {.secret = secret, .local = true};
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(rank, diagnostics);
      if (bootstrap && bootstrap->barrier("step", diagnostics)) ++good;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(good == kSquattedSize);
  // And the other way round: what listens there for this user takes no other.
  Diagnostics diagnostics;
  const auto hub =
      Hub::start({.local = true, .secret = secret, .size = 2, .timeout = 300s}, diagnostics);
  REQUIRE(hub);
  const Address address = hub->address();
  testing::Processes stranger;
  stranger.start([&] {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    const Fd socket = begin_connect(address);
    pollfd polled{socket.get(), POLLIN, 0};
    uint8_t buffer[1];
    if (!socket.valid() || ::poll(&polled, 1, testing::RawRank::kPatienceMs) != 1) return 2;
    return ::recv(socket.get(), buffer, 1, 0) == 0 ? 0 : 3;  // not even a challenge
  });
  CHECK(stranger.wait(0, 200s) == 0);
}

TEST_CASE("256 ranks of one machine meet", "[.][full]") {
  constexpr uint32_t kMany = 256;
  Secret secret;
  fill_random(secret);
  const auto start = std::chrono::steady_clock::now();
  testing::Processes processes;
  for (uint32_t r = 0; r < kMany; ++r) {
    processes.start([&, r] {
      LaunchedRank rank = launch_among_squatters(r, secret, {}, 60s);
      rank.size = kMany;
      rank.where = {.secret = secret, .local = true};
      Diagnostics diagnostics;
      const auto bootstrap = make_bootstrap(rank, diagnostics);
      return bootstrap && bootstrap->barrier("step", diagnostics) ? 0 : 1;
    });
  }
  for (uint32_t r = 0; r < kMany; ++r) CHECK(processes.wait(r, 60s) == 0);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  fmt::print("{} processes, from the first fork to the end of the last: {:.2f} s\n", kMany,
             time.count());
}

}  // namespace
}  // namespace mscclc
