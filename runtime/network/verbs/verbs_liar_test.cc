// Peers that hold the key of a lane over verbs, and lie on the connection beside it: what the other
// end makes of that. The devices are fake.
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "runtime/network/sockets/dial.h"
#include "runtime/network/verbs/control.h"
#include "runtime/network/verbs/port/path.h"
#include "runtime/network/verbs/port/port.h"
#include "tests/helpers/network/raw_lane.h"
#include "tests/helpers/verbs/lane_world.h"

namespace mscclc::verbs {
namespace {

using net::testing::say;
using testing::base_options;
using testing::reset_fake;
using testing::World;

/// As it goes over the connection.
Bytes message(ControlMessage::What what, const Bytes& body = {}) {
  Bytes bytes{static_cast<uint8_t>(what), static_cast<uint8_t>(body.size()),
              static_cast<uint8_t>(body.size() >> 8)};
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}
Bytes message(ControlMessage::What what, uint64_t number) {
  Bytes body;
  for (int i = 0; i < 8; ++i) body.push_back(static_cast<uint8_t>(number >> (8 * i)));
  return message(what, body);
}

void hear_message(const Fd& socket) {
  const Bytes head = net::testing::hear(socket, 3);
  (void)net::testing::hear(socket, head.size() < 3 ? 0 : head[1] + 256u * head[2]);
}

/// What an end at such a device says of itself; its queue pairs do not exist.
Meeting meeting_at(const Adapter& adapter, SignalMode mode) {
  return {.mode = mode,
          .path = path_end(adapter.port()),
          .records = 4096,
          .records_key = 1,
          .queues = {{1, 2}}};
}

/// The far end, whose peer has proved itself, and is this test.
struct DeceivedEnd : World {
  DeceivedEnd() : World(base_options()) {
    auto sockets = net::dial(decode_verbs_offer(end->offer())->socket, {.connections = 1});
    REQUIRE(sockets);
    peer = std::move(sockets->front());
  }
  Bytes connect(SignalMode mode = SignalMode::host_no_atomic) const {
    return message(ControlMessage::connect, encode(meeting_at(*near, mode)));
  }
  /// What the far end says when this comes.
  std::string said_of(const Bytes& bytes) {
    (void)say(peer, bytes);
    return far_reports.wait();
  }
  Fd peer;
};

TEST_CASE("messages that have no place there end the far end") {
  if (reset_fake() == nullptr) return;
  DeceivedEnd far;
  const std::string no_place = ", which has no place there\n";
  SECTION("before it is open") {
    CHECK(far.said_of(message(ControlMessage::flush, 1)) ==
          "the lane of rank 5 brings message 3" + no_place);
  }
  SECTION("one that opens it twice") {
    (void)say(far.peer, far.connect());
    CHECK(far.said_of(far.connect()) == "the lane of rank 5 brings message 1" + no_place);
  }
  SECTION("one that only it sends") {
    (void)say(far.peer, far.connect());
    CHECK(far.said_of(message(ControlMessage::gone)) ==
          "the lane of rank 5 brings message 5" + no_place);
  }
  SECTION("a flush without a number") {
    (void)say(far.peer, far.connect());
    CHECK(far.said_of(message(ControlMessage::flush, Bytes(7))) ==
          "the lane of rank 5 brings message 3" + no_place);
  }
  SECTION("a meeting that is cut off") {
    CHECK(far.said_of(message(ControlMessage::connect, Bytes(20))) ==
          "the lane of rank 5 cannot be made: what it says of itself is cut off\n");
  }
  SECTION("a port that there is not") {
    Meeting lie = meeting_at(*far.near, SignalMode::host);
    lie.path.mtu = 255;
    CHECK(far.said_of(message(ControlMessage::connect, encode(lie))) ==
          "the lane of rank 5 cannot be made: its port has MTU number 255, which does not exist\n");
  }
  SECTION("a failure of garbage") {
    CHECK(far.said_of(message(ControlMessage::failed, {0x1b, '[', 'm', '\n', 0xff})) ==
          "rank 5 ends its lane: \\x1b[m\\x0a\\xff\n");
  }
}

TEST_CASE("a peer that never reads the answers to flushes ends its lane over verbs") {
  if (reset_fake() == nullptr) return;
  DeceivedEnd far;
  (void)say(far.peer, far.connect());
  Bytes many;
  for (int i = 0; i < 1000; ++i) {
    const Bytes one = message(ControlMessage::flush, 0);
    many.insert(many.end(), one.begin(), one.end());
  }
  std::thread floods([&] {
    while (say(far.peer, many)) {
    }
  });
  CHECK(far.far_reports.wait() ==
        "the lane of rank 5 brings flushes whose answers it does not read\n");
  far.end.reset();
  far.far.reset();
  floods.join();
}

// It must not keep the thread from the other lanes.
TEST_CASE("a peer that floods one lane with flushes does not hold up another") {
  if (reset_fake() == nullptr) return;
  DeceivedEnd far;
  (void)say(far.peer, far.connect());
  const auto other_end =
      await_verbs_lane(testing::kNear, far.far, far.exposed, far.far_reports.callback());
  far.lane = far.open_with(other_end->offer());
  REQUIRE(far.lane != nullptr);
  std::atomic<bool> enough{false};
  std::thread floods([&] {
    Bytes answers(1 << 16);
    for (Bytes many; !enough;) {
      if (many.empty()) {
        for (int i = 0; i < 1000; ++i) {
          const Bytes one = message(ControlMessage::flush, 0);
          many.insert(many.end(), one.begin(), one.end());
        }
      }
      if (!say(far.peer, many)) return;
      while (::recv(far.peer.get(), answers.data(), answers.size(), MSG_DONTWAIT) > 0) {
      }
    }
  });
  for (uint64_t count = 1; count <= 20; ++count) {
    CHECK(far.lane->signal(far.at(0), count, far.diagnostics));
    CHECK(far.lane->flush(far.diagnostics));
  }
  CHECK(far.word(0) == 20);
  far.lane.reset();
  enough = true;
  floods.join();
}

// The device may be slower than the connection: what it still brings is awaited, not missed.
TEST_CASE("a connection may end after its bye, before the device has brought all") {
  if (reset_fake() == nullptr) return;
  DeceivedEnd far;
  (void)say(far.peer, far.connect());
  hear_message(far.peer);
  (void)say(far.peer, message(ControlMessage::bye, 1));
  far.peer.reset();
  // The next to come is turned away after that was heard.
  CHECK(!net::dial(decode_verbs_offer(far.end->offer())->socket, {.connections = 1}));
  CHECK(far.far_reports.text() == "");
}

/// The lane of rank 5, whose far end is this test.
struct MisledLane : World {
  MisledLane() : World(base_options()) {}
  /// Meets it, and says that this is `ready`.
  void open_to(const Bytes& ready) {
    std::thread meets([&] {
      raw.take(1);
      if (raw.sockets.empty()) return;
      hear_message(raw.sockets[0]);
      (void)say(raw.sockets[0], ready);
    });
    lane = open_with(encode(VerbsOffer{false, *net::decode_offer(raw.offer())}));
    meets.join();
  }
  net::testing::RawFarEnd raw;
};

TEST_CASE("a far end that answers what it was not asked ends the lane") {
  if (reset_fake() == nullptr) return;
  MisledLane near;
  near.open_to(
      message(ControlMessage::ready, encode(meeting_at(*near.far, SignalMode::host_no_atomic))));
  INFO(near.text());
  REQUIRE(near.lane != nullptr);
  const std::string no_place = ", which has no place there\n";
  SECTION("a flush") {
    (void)say(near.raw.sockets[0], message(ControlMessage::flushed, 1));
    CHECK(near.near_reports.wait() == "rank 3 sends message 4 of 1" + no_place);
  }
  SECTION("what only the sender says") {
    (void)say(near.raw.sockets[0], message(ControlMessage::bye, 0));
    CHECK(near.near_reports.wait() == "rank 3 sends message 7 of 0" + no_place);
  }
  SECTION("its meeting, again and again") {
    Bytes many;
    while (many.size() < 1 << 16) {
      const Bytes one = message(ControlMessage::ready);
      many.insert(many.end(), one.begin(), one.end());
    }
    std::thread floods([&] {
      while (say(near.raw.sockets[0], many)) {
      }
    });
    CHECK(near.near_reports.wait() == "rank 3 sends message 2" + no_place);
    near.lane.reset();
    near.near.reset();
    floods.join();
  }
}

TEST_CASE("a far end whose meeting is invalid gets no lane") {
  if (reset_fake() == nullptr) return;
  MisledLane near;
  Meeting lie = meeting_at(*near.far, SignalMode::host_no_atomic);
  SECTION("cut off") {
    near.open_to(message(ControlMessage::ready, Bytes(9)));
    CHECK_THAT(near.text(), Catch::EndsWith(": its answer is cut off\n"));
  }
  SECTION("of more queue pairs") {
    lie.queues.push_back({3, 4});
    near.open_to(message(ControlMessage::ready, encode(lie)));
    CHECK_THAT(near.text(), Catch::EndsWith(": it has another number of queue pairs\n"));
  }
  CHECK(near.lane == nullptr);
}

}  // namespace
}  // namespace mscclc::verbs
