// What a rank makes of what answers where the hub should be.
#include "runtime/bootstrap/tcp/connect.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "runtime/support/fixed_times.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace {

/// Looking up a name takes longer than the time after which it is looked up again.
std::atomic<bool> lookups_are_slow = false;
std::atomic<int> lookups = 0;

}  // namespace

/// In place of the system's, which it calls.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  ++lookups;
  if (lookups_are_slow) {
    std::this_thread::sleep_for(mscclc::kResolveAgain + std::chrono::milliseconds(50));
  }
  return real(host, service, hints, found);
}

namespace mscclc {
namespace {

using namespace std::chrono_literals;

/// Answers every connection with the same bytes, then keeps it open.
class Impostor {
 public:
  explicit Impostor(const wire::Bytes& answer)
      : Impostor([answer](const Fd& socket) {
          ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        }) {}
  explicit Impostor(std::function<void(const Fd& socket)> answer)
      : listener_(listen_on(Address::loopback(0))) {
    thread_ = std::thread([this, answer = std::move(answer)] {
      while (!stop_) {
        pollfd polled{listener_.get(), POLLIN, 0};
        if (::poll(&polled, 1, 5) != 1) continue;
        open_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ++met_;
        answer(open_.back());
      }
    });
  }
  ~Impostor() {
    stop_ = true;
    thread_.join();
  }
  /// Connections so far.
  int met() const { return met_; }
  Rendezvous where() const {
    return {.host = "127.0.0.1", .ports = {local_port(listener_)}, .secret = {}};
  }

 private:
  const Fd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> met_ = 0;
  std::vector<Fd> open_;
  std::thread thread_;
};

std::string error(const Rendezvous& where, std::chrono::seconds timeout = 3s) {
  Diagnostics diagnostics;
  if (connect_to_hub(where, 1, 2, timeout, diagnostics)) return "connected";
  if (!diagnostics.has_errors()) return "no error";
  return diagnostics.all().front().code + ": " + diagnostics.all().front().message;
}

TEST_CASE("what is not a hub is not taken for one") {
  struct Case {
    wire::Bytes answer;
    std::string met;
    std::string said = {};
  };
  wire::Bytes later = wire::frame(wire::Challenge{});
  later[16] = 1;  // its version
  wire::Bytes impostor = wire::frame(wire::Challenge{});
  const wire::Bytes welcome =
      wire::frame(wire::Welcome{.timeout_ms = 1000, .silence_ms = 2000, .hub_rank = 0});
  impostor.insert(impostor.end(), welcome.begin(), welcome.end());
  wire::Bytes refusing = wire::frame(wire::Challenge{});
  const wire::Bytes refused = wire::frame(wire::Refused{wire::Refusal::wrong_secret});
  refusing.insert(refusing.end(), refused.begin(), refused.end());
  const wire::Bytes half(refusing.begin(), refusing.end() - 1);
  std::vector<Case> cases = {
      {{}, "no answer"},
      {{'S', 'S', 'H', '-', '2', '.', '0', '-', 'O', 'p'},
       "what answers there is not a bootstrap: it says 'SSH-2.0-Op'"},
      {{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
       "what answers there is not a bootstrap: it says "
       "'\\x01\\x00\\x00\\x00\\xff\\xff\\xff\\xff'"},
      {{'\x1b', '[', '2', 'J', '\r', '\n', 'x', 'x'},
       "what answers there is not a bootstrap: it says '\\x1b[2J\\x0d\\x0axx'"},
      {wire::Bytes(1 << 20, 'A'),
       "what answers there is not a bootstrap: it says '" + std::string(32, 'A') + "…'"},
      {wire::frame(wire::FrameKind::ready),
       "what answers there is not a bootstrap of this version"},
      {later, "what answers there is not a bootstrap of this version"},
      {impostor, "what answers there does not know the job's secret"},
      {refusing, "it says that this rank's secret is another job's"},
      {half, "no answer"}};
  std::vector<std::thread> threads;  // each waits for the whole timeout, in which it must be met
  for (Case& c : cases) {
    threads.emplace_back([&c] {
      const auto is_met = [&c](int factor) {
        const Impostor listening(c.answer);
        c.said = error(listening.where(), factor * 3s);
        return c.said.ends_with(": " + c.met);
      };
      (void)testing::right_in_longer_times(is_met);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Case& c : cases) {
    CHECK_THAT(c.said, Catch::StartsWith("bootstrap-timeout: rank 1 cannot reach the bootstrap at "
                                         "127.0.0.1 port "));
    CHECK_THAT(c.said, Catch::EndsWith(": " + c.met));
  }
}

TEST_CASE("a rank that gives up where nothing listens ends at once") {
  const uint16_t port = local_port(listen_on(Address::loopback(0)));  // free again
  Rendezvous where{.host = "127.0.0.1", .ports = {port}, .secret = {}, .local = true};
  where.gives_up = [](Diagnostics& why) {
    why.error("aborted", {}, "not wanted any more");
    return true;
  };
  Diagnostics diagnostics;
  CHECK_FALSE(connect_to_hub(where, 1, 2, 24h, diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all().front().code == "aborted");
}

TEST_CASE("nothing listens, or the host has no address") {
  const UniqueId id = testing::spare_id();
  const auto is_refused = [&](int factor) {
    return error(Rendezvous::of(id), factor * 3s) ==
           fmt::format(
               "bootstrap-timeout: rank 1 cannot reach the bootstrap at 127.0.0.1 port {0} "
               "within {1} s: at 127.0.0.1:{0}: Connection refused (111)",
               id.address.port(), 3 * factor);
  };
  CHECK(testing::right_in_longer_times(is_refused));
  CHECK(error({.host = "no.such.host.invalid", .ports = {1}, .secret = {}})
            .find("cannot resolve host 'no.such.host.invalid'") != std::string::npos);
}

/// Refuses after the hello: what is said comes in two steps.
void refuse_hello(const Fd& socket) {
  const wire::Bytes challenge = wire::frame(wire::Challenge{});
  const wire::Bytes refused = wire::frame(wire::Refused{wire::Refusal::wrong_secret});
  ::send(socket.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL);
  pollfd polled{socket.get(), POLLIN, 0};
  if (::poll(&polled, 1, testing::RawRank::kPatienceMs) != 1) return;
  ::send(socket.get(), refused.data(), refused.size(), MSG_NOSIGNAL);
}

// A hub that waits for the proof gives a rank five seconds, which is less than two slow lookups.
TEST_CASE("a host is not looked up again between the steps of an attempt") {
  CHECK(testing::right_in_a_try([] {  // an attempt that hears nothing for long is looked up beside
    const Impostor hub{std::function(refuse_hello)};
    Rendezvous where = hub.where();
    where.patience = testing::kFarBeyond;
    where.gives_up = [&hub](Diagnostics& why) {
      if (hub.met() < 4) return false;
      why.error("test", {}, "enough");
      return true;
    };
    lookups = 0;
    lookups_are_slow = true;
    CHECK(error(where, testing::kFarBeyond) == "test: enough");
    lookups_are_slow = false;
    return lookups <= hub.met() + 1;  // one more where the last had not met the hub yet
  }));
}

}  // namespace
}  // namespace mscclc
