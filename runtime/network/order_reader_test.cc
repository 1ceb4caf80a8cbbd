// What a lane's connections bring, byte by byte: what is carried out, what waits, what is refused.
#include "runtime/network/order_reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "executor/shared_atomics.h"

namespace mscclc::net {
namespace {

using State = OrderReader::State;

constexpr uint64_t kExposedBytes = 1 << 20;

/// Memory of 1 MiB that peers may write, and the lane to it over two connections.
struct FarEnd {
  FarEnd() {
    lane.memory = std::make_shared<ExposedMemory>();
    lane.answer = [this](uint32_t connection, uint64_t number) {
      answers.push_back({connection, number});
      return listens;
    };
    lane.connections.resize(2);
    id = lane.memory->add(memory, reinterpret_cast<uint8_t*>(memory->data()), kExposedBytes);
  }
  uint8_t* data() const { return reinterpret_cast<uint8_t*>(memory->data()); }
  uint64_t word(uint64_t offset) const { return load_acquire<uint64_t>(data() + offset); }
  /// Orders that were carried out, by connection.
  std::vector<uint64_t> done() const {
    return {lane.connections[0].done, lane.connections[1].done};
  }

  std::shared_ptr<std::vector<uint64_t>> memory =
      std::make_shared<std::vector<uint64_t>>(kExposedBytes / 8);
  ExposedId id = 0;
  IncomingLane lane;
  bool listens = true;
  std::vector<std::pair<uint32_t, uint64_t>> answers;
};

Bytes order(const Order& order, const std::vector<uint8_t>& data = {}) {
  Bytes bytes(sizeof order);
  std::memcpy(bytes.data(), &order, sizeof order);
  bytes.insert(bytes.end(), data.begin(), data.end());
  bytes.resize(bytes.size() + (data.empty() ? 0 : Order::padding(data.size())));
  return bytes;
}

Bytes put(ExposedId memory, uint64_t offset, const std::vector<uint8_t>& data) {
  return order({.what = Order::put, .memory = memory, .offset = offset, .value = data.size()},
               data);
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Feeds at most `most` bytes at a time.
State feed(OrderReader& reader, const Bytes& bytes, size_t most = SIZE_MAX) {
  State state = reader.go_on();
  for (size_t at = 0; at < bytes.size() && state == State::more;) {
    const auto room = reader.room();
    REQUIRE(!room.empty());
    const size_t count = std::min({room.size(), most, bytes.size() - at});
    std::memcpy(room.data(), bytes.data() + at, count);
    reader.received(count);
    at += count;
    state = reader.go_on();
  }
  return state;
}

std::vector<uint8_t> counted_up(size_t count) {
  std::vector<uint8_t> data(count);
  std::iota(data.begin(), data.end(), uint8_t{1});
  return data;
}

TEST_CASE("orders are carried out however their bytes come") {
  for (const size_t most : {size_t{1}, size_t{7}, size_t{33}, size_t{4096}, SIZE_MAX}) {
    for (const size_t count : {1, 8, 13, 4096, 100'001, 256 << 10}) {
      FarEnd far;
      OrderReader reader(far.lane, 1);
      const auto data = counted_up(count);
      const Bytes bytes =
          joined({put(far.id, 16, data),
                  order({.what = Order::signal, .memory = far.id, .offset = 0, .value = 7}),
                  order({.what = Order::flush, .value = 3}), order({.what = Order::bye})});
      CHECK(feed(reader, bytes, most) == State::bye);
      CHECK(std::equal(data.begin(), data.end(), far.data() + 16));
      CHECK(far.data()[16 + count] == 0);
      CHECK(far.word(0) == 7);
      CHECK(far.answers == std::vector<std::pair<uint32_t, uint64_t>>{{1, 3}});
      CHECK(far.done() == std::vector<uint64_t>{0, 3});
    }
  }
}

TEST_CASE("parts of long puts are puts, and say how much of them is to come") {
  FarEnd far;
  OrderReader reader(far.lane, 0);
  const auto data = counted_up(32 << 10);
  const Order part{.what = Order::part, .memory = far.id, .offset = 8, .value = data.size()};
  const Bytes bytes = joined({order(part, data), put(far.id, 0, counted_up(8))});
  CHECK(feed(reader, {bytes.data(), bytes.data() + sizeof part + 4096}) == State::more);
  CHECK(reader.coming_of_long() == data.size() - 4096);
  CHECK(feed(reader, {bytes.data() + sizeof part + 4096, bytes.data() + bytes.size() - 8}) ==
        State::more);
  CHECK((reader.coming() == 8 && reader.coming_of_long() == 0));
  CHECK(feed(reader, {bytes.data() + bytes.size() - 8, bytes.data() + bytes.size()}) ==
        State::more);
  CHECK(std::equal(data.begin(), data.end(), far.data() + 8));
  CHECK(far.done() == std::vector<uint64_t>{2, 0});
}

TEST_CASE("where puts have threads of their own, little is read beyond one") {
  FarEnd far;
  far.lane.apart = true;
  OrderReader reader(far.lane, 0);
  CHECK(reader.room().size() == 4096);
  const Order part{.what = Order::part, .memory = far.id, .value = 32 << 10};
  CHECK(feed(reader, order(part)) == State::more);
  CHECK(reader.room().size() == (32 << 10) + 4096);
}

TEST_CASE("a fence waits for the orders of another connection") {
  FarEnd far;
  OrderReader first(far.lane, 0), second(far.lane, 1);
  const Bytes waits =
      joined({order({.what = Order::fence, .connection = 1, .value = 2}),
              order({.what = Order::signal, .memory = far.id, .offset = 0, .value = 5})});
  CHECK(feed(first, waits) == State::waits);
  CHECK(feed(second, put(far.id, 64, counted_up(8))) == State::more);
  CHECK(first.go_on() == State::waits);
  CHECK(far.word(0) == 0);
  CHECK(feed(second, put(far.id, 72, counted_up(3))) == State::more);
  CHECK(first.go_on() == State::more);
  CHECK(far.word(0) == 5);
  CHECK(far.done() == std::vector<uint64_t>{2, 2});
  // One that has been passed already.
  CHECK(feed(second, order({.what = Order::fence, .connection = 0, .value = 1})) == State::more);
}

TEST_CASE("a note comes in three orders, and is called out whole") {
  const auto part = [](uint32_t i) {
    return order({.what = Order::note,
                  .connection = i,
                  .memory = 3 * i + 1,
                  .offset = 3 * i + 2,
                  .value = 3 * i + 3});
  };
  FarEnd far;
  std::vector<LaneNote> notes;
  std::string answer;
  far.lane.noted = [&](const LaneNote& note) {
    notes.push_back(note);
    return answer;
  };
  OrderReader reader(far.lane, 0);
  for (const size_t most : {size_t{5}, SIZE_MAX}) {
    CHECK(feed(reader, joined({part(0), part(1), part(2)}), most) == State::more);
  }
  CHECK(notes == std::vector<LaneNote>(2, {1, 2, 3, 4, 5, 6, 7, 8}));
  SECTION("one that is refused ends the connection") {
    answer = "a note that is refused";
    CHECK(feed(reader, joined({part(0), part(1), part(2)})) == State::bad);
    CHECK(reader.why() == "a note that is refused");
  }
  SECTION("parts that do not follow one another") {
    CHECK(feed(reader, joined({part(0), part(2)})) == State::bad);
    CHECK(reader.why() == "part 2 of a note after 1");
  }
}

TEST_CASE("what is not an order for the lane is refused, and nothing is written") {
  struct Case {
    Order order;
    const char* why;
  };
  FarEnd at_all;
  const ExposedId id = at_all.id;
  const Case cases[] = {
      {{}, "order 0, which does not exist"},
      {{.what = 77}, "order 77, which does not exist"},
      {{.what = Order::put, .memory = id}, "a put of 0 bytes"},
      {{.what = Order::put, .memory = id, .value = OrderReader::kMaxPut + 1},
       "a put of 262145 bytes"},
      {{.what = Order::put, .memory = id, .value = UINT64_MAX},
       "a put of 18446744073709551615 bytes"},
      {{.what = Order::put, .memory = id, .offset = kExposedBytes - 7, .value = 8},
       "8 bytes at byte 1048569 of memory 1, which it may not write"},
      {{.what = Order::put, .memory = id, .offset = UINT64_MAX, .value = 8},
       "8 bytes at byte 18446744073709551615 of memory 1, which it may not write"},
      {{.what = Order::put, .memory = id + 1, .value = 8},
       "8 bytes at byte 0 of memory 2, which it may not write"},
      {{.what = Order::part, .memory = id}, "a put of 0 bytes"},
      {{.what = Order::part, .memory = id, .value = OrderReader::kMaxPut + 1},
       "a put of 262145 bytes"},
      {{.what = Order::part, .memory = id, .offset = kExposedBytes - 7, .value = 8},
       "8 bytes at byte 1048569 of memory 1, which it may not write"},
      {{.what = Order::signal, .memory = 0},
       "8 bytes at byte 0 of memory 0, which it may not write"},
      {{.what = Order::signal, .memory = id, .offset = 4},
       "8 bytes at byte 4 of memory 1, which it may not write"},
      {{.what = Order::signal, .memory = id, .offset = kExposedBytes},
       "8 bytes at byte 1048576 of memory 1, which it may not write"},
      {{.what = Order::fence, .connection = 2, .value = 1}, "a fence for connection 2, of 2"},
  };
  for (const Case& bad : cases) {
    FarEnd far;
    OrderReader reader(far.lane, 0);
    CHECK(feed(reader, joined({order(bad.order), Bytes(64, 0xff)})) == State::bad);
    CHECK(reader.why() == bad.why);
    CHECK(reader.go_on() == State::bad);
    CHECK(std::ranges::count(*far.memory, 0u) == kExposedBytes / 8);
    CHECK(far.done() == std::vector<uint64_t>{0, 0});
  }
}

TEST_CASE("flushes whose answers are not read end the connection") {
  FarEnd far;
  far.listens = false;
  OrderReader reader(far.lane, 0);
  CHECK(feed(reader, order({.what = Order::flush, .value = 1})) == State::bad);
  CHECK(reader.why() == "flushes whose answers it does not read");
}

TEST_CASE("numbers that mean something else to the reader of answers are no flushes") {
  for (const uint64_t number : {kGone, kRefused}) {
    FarEnd far;
    OrderReader reader(far.lane, 0);
    CHECK(feed(reader, order({.what = Order::flush, .value = number})) == State::bad);
    CHECK(reader.why() == "flush " + std::to_string(number) + ", which does not exist");
    CHECK(far.answers.empty());
  }
}

Bytes fence(uint32_t connection, uint64_t value) {
  return order({.what = Order::fence, .connection = connection, .value = value});
}

TEST_CASE("fences that would wait forever are refused") {
  FarEnd far;
  OrderReader first(far.lane, 0);
  SECTION("for its own orders") {
    CHECK(feed(first, fence(0, 1)) == State::bad);
    CHECK(first.why() == "fences that wait for one another");
    OrderReader second(far.lane, 1);
    CHECK(feed(second, fence(0, 1)) == State::bad);
    CHECK(second.why() == "a fence for order 1 of connection 0, which brings 0");
  }
  SECTION("for a connection that has not come") {
    CHECK(feed(first, fence(1, 1)) == State::bad);
    CHECK(first.why() == "a fence for order 1 of connection 1, which brings 0");
  }
  SECTION("for one another") {
    OrderReader second(far.lane, 1);
    CHECK(feed(first, fence(1, 1)) == State::waits);
    CHECK(feed(second, fence(0, 1)) == State::bad);
    CHECK(second.why() == "fences that wait for one another");
  }
  SECTION("for more than a connection has brought at its end") {
    OrderReader second(far.lane, 1);
    CHECK(feed(first, fence(1, UINT64_MAX)) == State::waits);
    const Bytes last = joined({fence(0, 0), order({.what = Order::bye})});
    CHECK(feed(second, last) == State::bye);
    CHECK(first.go_on() == State::bad);
    CHECK(first.why() == "a fence for order 18446744073709551615 of connection 1, which brings 1");
  }
}

// When the second comes to its fence, the first has not learned that it may go on.
TEST_CASE("a connection that waits may be waited for by the one that has let it go") {
  FarEnd far;
  OrderReader first(far.lane, 0), second(far.lane, 1);
  CHECK(feed(first, fence(1, 1)) == State::waits);
  const Bytes both = joined({order({.what = Order::flush, .value = 1}), fence(0, 2)});
  CHECK(feed(second, both) == State::waits);
  CHECK(first.go_on() == State::more);
  CHECK(feed(first, order({.what = Order::flush, .value = 2})) == State::more);
  CHECK(second.go_on() == State::more);
}

TEST_CASE("what is put to memory that was freed is dropped") {
  FarEnd far;
  OrderReader reader(far.lane, 0);
  far.memory.reset();
  const Bytes bytes = joined({put(far.id, 0, counted_up(100)),
                              order({.what = Order::signal, .memory = far.id, .value = 1}),
                              order({.what = Order::bye})});
  CHECK(feed(reader, bytes) == State::bye);
}

TEST_CASE("memory that is freed while a put comes is kept until it has come") {
  FarEnd far;
  OrderReader reader(far.lane, 0);
  const std::weak_ptr<void> memory = far.memory;
  const Bytes bytes = put(far.id, 0, counted_up(100));
  CHECK(feed(reader, {bytes.begin(), bytes.begin() + 50}) == State::more);
  far.memory.reset();
  CHECK(!memory.expired());
  CHECK(feed(reader, {bytes.begin() + 50, bytes.end()}) == State::more);
  CHECK(memory.expired());
}

TEST_CASE("greetings are taken only whole, and only as they are") {
  const Challenge challenge{{1, 2, 3}};
  Hello hello{.lane = 5, .connection = 1, .connections = 2, .nonce = {9}};
  const Key key{4};
  hello.proof = sender_proof(key, challenge, hello);
  CHECK(decode_challenge(encode(challenge))->nonce == challenge.nonce);
  CHECK(encode(*decode_hello(encode(hello))) == encode(hello));
  CHECK(encode(challenge).size() == Challenge::kBytes);
  CHECK(encode(hello).size() == Hello::kBytes);
  Bytes bytes = encode(hello);
  bytes.pop_back();
  CHECK(!decode_hello(bytes));
  bytes = encode(challenge);
  bytes[0] ^= 1;
  CHECK(!decode_challenge(bytes));
  for (const auto& [connection, connections] :
       std::vector<std::pair<uint32_t, uint32_t>>{{2, 2}, {0, 0}, {0, kMaxConnections + 1}}) {
    Hello wrong = hello;
    wrong.connection = connection;
    wrong.connections = connections;
    CHECK(!decode_hello(encode(wrong)));
  }
}

TEST_CASE("a proof covers all of a hello, its challenge, its end and the key") {
  const Challenge challenge{{1}};
  const Hello hello{.lane = 5, .connection = 1, .connections = 2, .nonce = {9}};
  const Key key{4};
  const Digest proof = sender_proof(key, challenge, hello);
  CHECK(receiver_proof(key, challenge, hello) != proof);
  CHECK(sender_proof({5}, challenge, hello) != proof);
  CHECK(sender_proof(key, {{2}}, hello) != proof);
  for (const Hello& other : {Hello{.lane = 6, .connection = 1, .connections = 2, .nonce = {9}},
                             Hello{.lane = 5, .connection = 0, .connections = 2, .nonce = {9}},
                             Hello{.lane = 5, .connection = 1, .connections = 3, .nonce = {9}},
                             Hello{.lane = 5, .connection = 1, .connections = 2, .nonce = {8}}}) {
    CHECK(sender_proof(key, challenge, other) != proof);
  }
}

TEST_CASE("a lane's offer comes back as it was, or not at all") {
  const LaneOffer offer{*Address::parse("10.1.2.3", 4321), 7, {1, 2, 3}};
  const Bytes bytes = encode(offer);
  const auto back = decode_offer(bytes);
  REQUIRE(back);
  CHECK(back->address == offer.address);
  CHECK(back->lane == 7);
  CHECK(back->key == offer.key);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    const auto part = decode_offer(std::span(bytes).first(cut));
    CHECK((!part || part->address.host() != "10.1.2.3"));
  }
  CHECK(!decode_offer(encode(LaneOffer{*Address::parse("10.1.2.3", 0), 7, {}})));
}

}  // namespace
}  // namespace mscclc::net
