// What a rank makes of who answers where the hub should be.
#include "runtime/bootstrap/connect.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/bootstrap/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;

/// Answers every connection with the same bytes, then keeps it open.
class Impostor {
 public:
  explicit Impostor(wire::Bytes answer) : listener_(listen_on(Address::loopback(0))) {
    thread_ = std::thread([this, answer = std::move(answer)] {
      while (!stop_) {
        pollfd polled{listener_.get(), POLLIN, 0};
        if (::poll(&polled, 1, 5) != 1) continue;
        open_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ::send(open_.back().get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    });
  }
  ~Impostor() {
    stop_ = true;
    thread_.join();
  }
  Rendezvous where() const {
    return {.host = "127.0.0.1", .ports = {local_port(listener_)}, .secret = {}};
  }

 private:
  const Fd listener_;
  std::atomic<bool> stop_ = false;
  std::vector<Fd> open_;
  std::thread thread_;
};

std::string error(const Rendezvous& where, std::chrono::milliseconds timeout = 300ms) {
  Diagnostics diagnostics;
  CHECK_FALSE(connect_to_hub(where, 1, 2, timeout, diagnostics));
  REQUIRE(diagnostics.has_errors());
  return diagnostics.all().front().code + ": " + diagnostics.all().front().message;
}

TEST_CASE("who is not a hub is told from one") {
  const auto says = [](wire::Bytes answer) {
    const Impostor impostor(std::move(answer));
    const std::string text = error(impostor.where());
    CHECK(text.starts_with(
        "bootstrap-timeout: rank 1 cannot reach the bootstrap at 127.0.0.1 port "));
    return text.substr(text.find(": ", text.find("0.3 s: at ") + 7) + 2);
  };
  CHECK(says({}) == "no answer");
  CHECK(says({'S', 'S', 'H', '-', '2', '.', '0', '-', 'O', 'p'}) ==
        "what answers there is not a bootstrap: it says 'SSH-2.0-Op'");
  CHECK(says({1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}) ==
        "what answers there is not a bootstrap: it says "
        "'\\x01\\x00\\x00\\x00\\xff\\xff\\xff\\xff'");
  CHECK(says({'\x1b', '[', '2', 'J', '\r', '\n', 'x', 'x'}) ==
        "what answers there is not a bootstrap: it says '\\x1b[2J\\x0d\\x0axx'");
  wire::Bytes flood(1 << 20, 'A');
  CHECK(says(flood) ==
        "what answers there is not a bootstrap: it says '" + std::string(32, 'A') + "…'");
  CHECK(says(wire::frame(wire::FrameKind::ready)) ==
        "what answers there is not a bootstrap of this version");
  wire::Bytes later = wire::frame(wire::Challenge{});
  later[16] = 1;  // its version
  CHECK(says(later) == "what answers there is not a bootstrap of this version");
  wire::Bytes impostor = wire::frame(wire::Challenge{});
  const wire::Bytes welcome =
      wire::frame(wire::Welcome{.timeout_ms = 1000, .silence_ms = 2000, .hub_rank = 0});
  impostor.insert(impostor.end(), welcome.begin(), welcome.end());
  CHECK(says(impostor) == "what answers there does not know the job's secret");
  impostor = wire::frame(wire::Challenge{});
  const wire::Bytes refused = wire::frame(wire::Refused{wire::Refusal::wrong_secret});
  impostor.insert(impostor.end(), refused.begin(), refused.end());
  CHECK(says(impostor) == "it says that this rank's secret is another job's");
  impostor.resize(impostor.size() - 1);
  CHECK(says(impostor) == "no answer");
}

TEST_CASE("nobody listens, or the host has no address") {
  const UniqueId id = testing::spare_id();
  CHECK(error(Rendezvous::of(id)) ==
        fmt::format("bootstrap-timeout: rank 1 cannot reach the bootstrap at 127.0.0.1 port {0} "
                    "within 0.3 s: at 127.0.0.1:{0}: Connection refused (111)",
                    id.address.port()));
  CHECK(error({.host = "no.such.host.invalid", .ports = {1}, .secret = {}})
            .find("cannot resolve host 'no.such.host.invalid'") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
