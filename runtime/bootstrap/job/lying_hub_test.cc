// Hubs that know the job's secret and lie: what their ranks make of that, in bounded time.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "runtime/api/job.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/longer_times.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using wire::FrameKind;

/// Speaks to one rank byte by byte.
class RawHub {
 public:
  RawHub() : listener_(listen_on(Address::loopback(0))) {
    id.address = Address::loopback(local_port(listener_));
    fill_random(id.secret);
  }

  /// Takes in the rank.
  void take_in(wire::Welcome welcome) {
    if (!ready(listener_.get())) return;
    connection_.emplace(
        Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)),
        wire::kMaxFromRank);
    wire::Challenge challenge;
    challenge.key = keys_.open;
    say(wire::frame(challenge));
    if (!hear(FrameKind::hello)) return;
    const auto hello = wire::read_hello(connection_->in().payload());
    const Digest said = wire::transcript(challenge, *hello);
    welcome.proof = wire::hub_proof(id.secret, said, welcome);
    say(wire::frame(welcome));
    const auto keys = wire::session_keys(id.secret, said, welcome, keys_, hello->key);
    if (connection_->seal(keys->to_rank, keys->to_hub)) hear(FrameKind::joined);
  }
  /// Says that all have come, and waits until the rank comes to a step.
  void begin() {
    say(wire::frame(FrameKind::ready));
    hear(FrameKind::gather);
  }
  void say(const wire::Bytes& frame) {
    connection_->send(frame);
    (void)connection_->write_some();
  }
  void close() { connection_.reset(); }

  UniqueId id{};

 private:
  static bool ready(int fd) {
    pollfd polled{fd, POLLIN, 0};
    return ::poll(&polled, 1, 120'000) == 1;  // far beyond what is needed
  }
  bool hear(FrameKind kind) {
    for (bool alive = true;;) {
      const auto next = connection_->in().next();
      if (next == wire::FrameReader::Next::frame && connection_->in().kind() == kind) return true;
      if (next == wire::FrameReader::Next::frame) continue;
      if (!alive || next == wire::FrameReader::Next::bad || !ready(connection_->fd())) return false;
      alive = connection_->read_some();
    }
  }

  const Fd listener_;
  const wire::KeyPair keys_ = wire::KeyPair::make();
  std::optional<Connection> connection_;
};

constexpr wire::Welcome kWelcome{
    .timeout_ms = 60'000, .silence_ms = 60'000, .hub_rank = 1, .proof = {}};

/// What rank 0 of 2 reports of a step, if its hub then does this.
std::string report_of(const std::function<void(RawHub&)>& then,
                      std::chrono::milliseconds timeout = 300s,
                      const wire::Welcome& welcome = kWelcome) {
  RawHub hub;
  Diagnostics diagnostics;
  std::thread speaks([&] {
    hub.take_in(welcome);
    hub.begin();
    then(hub);
  });
  {
    const auto bootstrap = join_job(hub.id, 0, 2, timeout, nullptr, diagnostics);
    if (bootstrap) (void)bootstrap->barrier("step", diagnostics);
  }
  speaks.join();
  return render_text(diagnostics, Sources(), 100);
}

wire::Bytes gathered(uint64_t step, size_t ranks) {
  return wire::frame(wire::Gathered{.step = step, .all = std::vector<wire::Payload>(ranks)});
}

TEST_CASE("what no hub sends ends the job") {
  const size_t before = testing::open_descriptors();
  const wire::Bytes cases[] = {gathered(1, 2),  // of another step
                               gathered(0, 1),
                               gathered(0, 3),
                               wire::frame(FrameKind::goodbye),
                               wire::frame(FrameKind::joined),
                               wire::frame(kWelcome),
                               {uint8_t(FrameKind::gathered), 0, 0, 0, 0xff, 0xff, 0xff, 0xff}};
  for (const wire::Bytes& frame : cases) {
    CHECK_THAT(report_of([&](RawHub& hub) { hub.say(frame); }),
               Catch::StartsWith("error: rank 1, which runs the bootstrap's hub at 127.0.0.1:") &&
                   Catch::EndsWith(", has sent something that no hub sends\n"));
  }
  CHECK(testing::open_descriptors() == before);
}

// Each question would have an answer: a hub that asks and does not read would fill this rank.
TEST_CASE("a hub asks once which rank waits for which") {
  CHECK_THAT(report_of([](RawHub& hub) {
               hub.say(wire::frame(FrameKind::asked));
               hub.say(wire::frame(FrameKind::asked));
             }),
             Catch::EndsWith(", has sent something that no hub sends\n"));
}

TEST_CASE("an answer to a step that this rank has not come to ends the job") {
  RawHub hub;
  Diagnostics diagnostics;
  std::thread speaks([&] {
    hub.take_in(kWelcome);
    hub.say(gathered(0, 2));
  });
  CHECK(join_job(hub.id, 0, 2, 300s, nullptr, diagnostics) == nullptr);
  speaks.join();
  CHECK_THAT(render_text(diagnostics, Sources(), 100),
             Catch::EndsWith(", has sent something that no hub sends\n"));
}

TEST_CASE("a hub that stops in the middle of a message has died") {
  const wire::Bytes whole = gathered(0, 2);
  CHECK_THAT(report_of([&](RawHub& hub) {
               hub.say({whole.begin(), whole.end() - 1});
               hub.close();
             }),
             Catch::EndsWith(", has died: its connection was closed\n"));
}

TEST_CASE("a rank waits no longer than it has said, whatever its hub answers") {
  const wire::Welcome endless{
      .timeout_ms = UINT32_MAX, .silence_ms = UINT32_MAX, .hub_rank = 1, .proof = {}};
  const auto is_right = [&](int factor) {
    // And as long as its hub has for its own error.
    const std::string limit = fmt::format("{:g} s", 3 + 0.1 * factor);
    return report_of([](RawHub&) {}, factor * 100ms, endless)
        .ends_with(", has not answered at 'step' within " + limit + "\n");
  };
  CHECK(testing::right_in_longer_times(is_right));
}

TEST_CASE("why a job has failed is shown as text") {
  const wire::Failure failure{wire::FailureKind::died, "\x1b[31mrank 1\r\xff\nnote"};
  CHECK(report_of([&](RawHub& hub) { hub.say(wire::frame(failure)); }) ==
        "error: \\x1b[31mrank 1\\x0d\\xff\nnote: note\n");
}

}  // namespace
}  // namespace mscclc
