// The queue of a proxy: requests as words that come in any order.
#include "executor/port_slots.h"

#include <catch2/catch.hpp>

namespace mscclc::device {
namespace {

constexpr uint64_t kBits = 2, kLargest = (uint64_t{1} << PortSlot::kTurn) - 1;

struct Queue {
  PortSlot slots[1 << kBits] = {};
  uint64_t claimed = 0, seen = 0, flushed = 0, handled = 0;
  PortQueue queue{slots, kBits, &claimed, &seen, &flushed, &handled};
};

bool same(const PortRequest& a, const PortRequest& b) {
  return a.what == b.what && a.channel == b.channel && a.to == b.to && a.from == b.from &&
         a.bytes == b.bytes;
}

TEST_CASE("a request is read as it was written") {
  Queue q;
  const PortRequest requests[] = {{PortWhat::put, 0xffffffff, kLargest, kLargest, kLargest},
                                  {PortWhat::signal, 7},
                                  {PortWhat::flush, 0},
                                  {PortWhat::put_and_signal, 0, 1, 2, 3}};
  for (uint64_t i = 0; i < std::size(requests); ++i) write_request(q.queue, i, requests[i]);
  for (uint64_t i = 0; i < std::size(requests); ++i) {
    PortRequest read;
    REQUIRE(read_request(q.queue, i, read));
    CHECK(same(read, requests[i]));
    CHECK(!read_request(q.queue, i + q.queue.capacity(), read));
  }
}

// A slot holds what was written a turn before; its turns begin again after some.
TEST_CASE("a request has come when all of its words have, in every turn") {
  Queue q;
  PortRequest read;
  constexpr uint64_t kTurns = 300;
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    const uint64_t number = turn << kBits;
    const PortRequest request{PortWhat::put, 1, kLargest, 0, turn};
    CHECK(!read_request(q.queue, number, read));
    const PortSlot words = slot_of(request, q.queue.turn(number));
    for (uint32_t missing = 0; missing < PortSlot::kWords; ++missing) {
      PortSlot& slot = q.queue.slot(number);
      const PortSlot before = slot;
      for (uint32_t i = 0; i < PortSlot::kWords; ++i) {
        if (i != missing) slot.words[i] = words.words[i];
      }
      CHECK(!read_request(q.queue, number, read));
      slot = before;
    }
    write_request(q.queue, number, request);
    REQUIRE(read_request(q.queue, number, read));
    CHECK(same(read, request));
  }
}

}  // namespace
}  // namespace mscclc::device
