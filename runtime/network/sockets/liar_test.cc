// Peers that hold the key of a lane, so that every proof of theirs is right, and lie: what the
// other end makes of that, and that it ends.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/network/order_reader.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/network/sockets/socket_end.h"
#include "runtime/network/sockets/socket_lane.h"
#include "runtime/support/address/sockets.h"
#include "tests/helpers/network/lane_checks.h"
#include "tests/helpers/network/raw_lane.h"
#include "tests/helpers/runtime/descriptors.h"

namespace mscclc::net {
namespace {

using std::chrono::milliseconds;
using testing::as_bytes;
using testing::await_end;
using testing::hear;
using testing::RawFarEnd;
using testing::say;
using testing::say_bytewise;

constexpr milliseconds kPatient{120'000};
constexpr uint32_t kLines = 3;

/// The far end of a lane, at rank 3, whose peer is this test.
struct Deceived : testing::LaneMemory {
  explicit Deceived(std::chrono::seconds dead = std::chrono::seconds(30)) : LaneMemory(kPatient) {
    net = SocketNet::start({.interface = "=lo", .dead = dead}, diagnostics);
    REQUIRE(net != nullptr);
    end = await_socket_lane(testing::kNear, net, exposed, far_reports.callback());
    offer = *decode_offer(end->offer());
  }
  /// All connections, in good order.
  std::vector<Fd> open() const {
    auto sockets = dial(offer, {.connections = kLines});
    REQUIRE(sockets);
    return *std::move(sockets);
  }
  Bytes signal(uint64_t value) const {
    return as_bytes({.what = Order::signal, .memory = id, .value = value});
  }

  std::shared_ptr<SocketNet> net;
  std::unique_ptr<LaneEnd> end;
  LaneOffer offer;
};

/// A connection that has said its hello, with a proof, byte by byte; invalid: it was turned away.
Fd greet_slowly(const LaneOffer& offer, Hello hello) {
  Fd socket = testing::knock(offer.address);
  const auto challenge = decode_challenge(hear(socket, Challenge::kBytes));
  REQUIRE(challenge);
  hello.lane = offer.lane;
  hello.proof = sender_proof(offer.key, *challenge, hello);
  say_bytewise(socket, encode(hello));
  return hear(socket, Welcome::kBytes).size() == Welcome::kBytes ? std::move(socket) : Fd();
}

TEST_CASE("connections come slowly and in any order, each once") {
  Deceived far;
  const auto other = await_socket_lane(testing::kNear, far.net, far.exposed, {});
  std::vector<Fd> sockets(kLines);
  for (const uint32_t i : {2u, 0u, 1u}) {
    sockets[i] = greet_slowly(far.offer, {.connection = i, .connections = kLines});
    CHECK(sockets[i].valid());
    CHECK(!greet_slowly(far.offer, {.connection = i, .connections = kLines}).valid());
    CHECK(!greet_slowly(far.offer, {.connection = i, .connections = kLines + 1}).valid());
    CHECK(!greet_slowly(far.offer, {.connection = kLines, .connections = kLines}).valid());
    // The key of this lane opens no other.
    LaneOffer mixed = far.offer;
    mixed.lane = decode_offer(other->offer())->lane;
    CHECK(!greet_slowly(mixed, {.connection = i, .connections = kLines}).valid());
  }
  say(sockets[2], as_bytes({.what = Order::fence, .connection = 1, .value = 1}));
  say(sockets[2], far.signal(7));
  say_bytewise(sockets[1], far.signal(5));
  far.await_count(0, 7);
  far.end.reset();
  CHECK(!greet_slowly(far.offer, {.connection = 0, .connections = kLines}).valid());
  CHECK(far.far_reports.text() == "");
}

TEST_CASE("thousands of connections with the key come to nothing") {
  Deceived far;
  const auto sockets = far.open();
  const size_t before = mscclc::testing::open_descriptors();
  for (uint64_t i = 1; i <= 1000; ++i) {
    CHECK(!dial(far.offer, {.connections = kLines}));
    say(sockets[0], far.signal(i));
    far.await_count(0, i);
  }
  CHECK(mscclc::testing::open_descriptors() == before);
  CHECK(far.far_reports.text() == "");
}

/// What rank 3 says of such bytes of connection 0, and `second` of connection 1; the peer hears the
/// same.
std::string said_of(const Bytes& first, const Bytes& second = {}) {
  Deceived far;
  const auto sockets = far.open();
  say(sockets[0], first);
  say(sockets[1], second);
  const std::string why = far.far_reports.wait();
  Bytes answer = hear(sockets[0], sizeof kRefused + kRefusalBytes);
  REQUIRE(answer.size() == sizeof kRefused + kRefusalBytes);
  CHECK(std::string(reinterpret_cast<const char*>(&answer[sizeof kRefused])) + "\n" == why);
  CHECK(far.word(0) == 0);
  return why;
}

Bytes fence_at(uint32_t connection, uint64_t value) {
  return as_bytes({.what = Order::fence, .connection = connection, .value = value});
}

TEST_CASE("orders that could hold the far end forever are refused") {
  const Bytes bye = as_bytes({.what = Order::bye});
  CHECK(said_of(fence_at(0, 1)) == "the lane of rank 5 brings fences that wait for one another\n");
  CHECK(said_of(fence_at(1, 1), fence_at(0, 1)) ==
        "the lane of rank 5 brings fences that wait for one another\n");
  CHECK(said_of(fence_at(1, UINT64_MAX), bye) ==
        "the lane of rank 5 brings a fence for order 18446744073709551615 of connection 1, which "
        "brings 0\n");
  CHECK(said_of(fence_at(kLines, 1)) ==
        "the lane of rank 5 brings a fence for connection 3, of 3\n");
  CHECK(said_of(as_bytes({.what = Order::flush})) ==
        "the lane of rank 5 brings flush 0, which does not exist\n");
}

TEST_CASE("a fence for a connection that has not come is refused") {
  Deceived far;
  const Fd only = greet_slowly(far.offer, {.connection = 0, .connections = 2});
  say(only, fence_at(1, 1));
  CHECK(far.far_reports.wait() ==
        "the lane of rank 5 brings a fence for order 1 of connection 1, which brings 0\n");
}

// With silence instead of the cut the far end waits as for any rank that does nothing.
TEST_CASE("what is cut off in the middle ends the lane, what is silent there does not") {
  const bool cut = GENERATE(true, false);
  Deceived far;
  auto sockets = far.open();
  const Bytes put = as_bytes({.what = Order::put, .memory = far.id, .value = 4096});
  const Bytes order = GENERATE_COPY(Bytes(20, 1), put);
  say(sockets[1], order);
  say(sockets[1], Bytes(order.size() < sizeof(Order) ? 0 : 1000, 9));
  say(sockets[0], far.signal(1));
  far.await_count(0, 1);
  if (cut) sockets[1].reset();
  if (cut) {
    CHECK(far.far_reports.wait() ==
          "the lane of rank 5 has ended: its process has ended, or has closed the connection\n");
  }
  far.end.reset();
  if (!cut) CHECK(far.far_reports.text() == "");
}

TEST_CASE("nothing that comes after the last order is carried out") {
  Deceived far;
  const auto sockets = far.open();
  Bytes bytes = as_bytes({.what = Order::bye});
  const Bytes more = far.signal(1);
  bytes.insert(bytes.end(), more.begin(), more.end());
  for (const Fd& socket : sockets) say(socket, bytes);
  for (const Fd& socket : sockets) CHECK(await_end(socket, kPatient));
  CHECK(far.word(0) == 0);
  CHECK(far.far_reports.text() == "");
}

TEST_CASE("a peer that never reads the answers to flushes ends its lane") {
  Deceived far;
  const auto sockets = far.open();
  std::atomic<bool> enough{false};
  std::thread asks([&] {
    for (uint64_t number = 1; !enough;) {
      Bytes many;
      for (int i = 0; i < 256; ++i) {
        const Bytes one = as_bytes({.what = Order::flush, .value = number++});
        many.insert(many.end(), one.begin(), one.end());
      }
      if (!say(sockets[0], many)) return;
    }
  });
  CHECK(far.far_reports.wait() ==
        "the lane of rank 5 brings flushes whose answers it does not read\n");
  enough = true;
  far.end.reset();
  far.net.reset();
  asks.join();
}

// Else each lane of such a peer would leave descriptors, and a thread to drop what it sends.
TEST_CASE("a peer that goes on sending to a lane that has ended is cut off") {
  Deceived far(std::chrono::seconds(1));
  const auto sockets = far.open();
  far.end.reset();
  for (const Fd& socket : sockets) CHECK(hear(socket, sizeof kGone) == Bytes(sizeof kGone));
  CHECK(testing::send_until_cut_off(sockets[0], kPatient));
}

/// The lane of rank 5 to a far end that is this test.
struct Misled : testing::LaneMemory {
  Misled() : LaneMemory(kPatient) {
    net = SocketNet::start({.interface = "=lo", .connections = kLines}, diagnostics);
    window = std::make_unique<testing::Window>(id, testing::kWorldBytes);
    std::thread greets([&] { far.take(kLines); });
    lane = open_socket_lane({.rank = testing::kFar,
                             .offer = far.offer(),
                             .over = {},
                             .failed = near_reports.callback()},
                            net, kPatient, diagnostics);
    greets.join();
    INFO(text());
    REQUIRE(lane != nullptr);
  }
  const Fd& line(size_t i) { return far.sockets.at(i); }

  std::shared_ptr<SocketNet> net;
  RawFarEnd far;
  std::unique_ptr<Lane> lane;
};

Bytes answer(uint64_t number) {
  Bytes bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

TEST_CASE("an answer that was not asked for ends the lane") {
  Misled near;
  SECTION("none was asked for") {
    say_bytewise(near.line(1), answer(1));
    CHECK(near.near_reports.wait() == "rank 3 answers flush 1, for which it was not asked\n");
  }
  SECTION("another was") {
    CHECK(near.lane->try_flush(near.diagnostics) == FlushState::under_way);
    say(near.line(0), answer(UINT64_MAX - 1));
    CHECK(near.near_reports.wait() ==
          "rank 3 answers flush 18446744073709551614, for which it was not asked\n");
  }
  SECTION("it was answered before, and is answered again and again") {
    CHECK(near.lane->try_flush(near.diagnostics) == FlushState::under_way);
    say(near.line(0), answer(1));
    CHECK(near.lane->flush(near.diagnostics));
    CHECK(near.text() == "");
    Bytes many;
    while (many.size() < 1 << 16) many.push_back(many.size() % 8 == 0 ? 1 : 0);
    std::thread floods([&] {
      while (say(near.line(0), many)) {
      }
    });
    CHECK(near.near_reports.wait() == "rank 3 answers flush 1, for which it was not asked\n");
    near.lane.reset();
    floods.join();
  }
  if (near.lane != nullptr) CHECK(!near.lane->flush(near.diagnostics));
}

TEST_CASE("answers of several connections may come in any order") {
  Misled near;
  const uint64_t value = 1;
  CHECK(near.lane->try_flush(near.diagnostics) == FlushState::under_way);
  CHECK(near.lane->put(near.at(256 << 10), &value, 8, near.diagnostics));  // by the next connection
  CHECK(near.lane->try_flush(near.diagnostics) == FlushState::under_way);
  say(near.line(2), answer(2));
  CHECK(near.lane->flush(near.diagnostics));
  say(near.line(0), answer(1));
  CHECK(near.lane->try_flush(near.diagnostics) == FlushState::under_way);
  say(near.line(2), answer(3));
  CHECK(near.lane->flush(near.diagnostics));
  CHECK(near.text() + near.near_reports.text() == "");
}

TEST_CASE("a refusal of garbage is shown as text, a cut one as a cut connection") {
  Misled near;
  Bytes refusal = answer(kRefused);
  const std::string text = "\x1b[31mred\n\r\t\xff\x80 error: no";
  refusal.insert(refusal.end(), text.begin(), text.end());
  refusal.resize(sizeof kRefused + kRefusalBytes);
  SECTION("whole, byte by byte") {
    say_bytewise(near.line(2), refusal);
    const std::string why = near.near_reports.wait();
    CHECK(why == "rank 3 ends its lane: \\x1b[31mred\\x0a\\x0d\\x09\\xff\\x80 error: no\n");
  }
  SECTION("without an end") {
    std::fill(refusal.begin() + sizeof kRefused, refusal.end(), 'x');
    say(near.line(2), refusal);
    CHECK(near.near_reports.wait() ==
          "rank 3 ends its lane: " + std::string(kRefusalBytes, 'x') + "\n");
  }
  SECTION("cut") {
    say(near.line(2), Bytes(refusal.begin(), refusal.begin() + 100));
    near.far.sockets[2].reset();
    CHECK(near.near_reports.wait() ==
          "the lane to rank 3 has ended: its process has ended, or has closed the connection\n");
  }
}

TEST_CASE("a far end that says that it is gone in the middle of a put needs no more") {
  const std::vector<uint8_t> bytes(testing::kWorldBytes);
  Misled near;
  CHECK(near.lane->put(near.at(0), bytes.data(), bytes.size(), near.diagnostics));
  say_bytewise(near.line(1), answer(kGone));
  uint64_t own = 0;
  CHECK(near.lane->flush(near.diagnostics));
  CHECK(near.lane->complete(&own, 1, near.diagnostics));
  CHECK(own == 1);
  CHECK(near.text() + near.near_reports.text() == "");
}

}  // namespace
}  // namespace mscclc::net
