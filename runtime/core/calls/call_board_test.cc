// Ranks as threads that make calls on a board: what it finds against what there is to be found.
#include "runtime/core/calls/call_board.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace mscclc {
namespace {

bool never(uint32_t, uint64_t) { return false; }

struct Boards {
  explicit Boards(uint32_t ranks) {
    Diagnostics diagnostics;
    const Fd memory = CallBoard::make_memory(ranks, diagnostics);
    std::vector<uint32_t> numbers;
    for (uint32_t r = 0; r < ranks; ++r) numbers.push_back(10 + r);
    for (uint32_t r = 0; r < ranks; ++r) {
      of.push_back(CallBoard::open(memory, numbers, r, diagnostics));
      if (of.back() == nullptr) std::abort();
    }
  }
  std::optional<CallBoard::Refusal> call(uint32_t rank, uint64_t bytes, uint8_t placement = 0) {
    CallRecord record{.bytes = bytes};
    record.placement = placement;
    return of[rank]->next(record, never);
  }
  std::optional<CallBoard::Refusal> load(uint32_t rank, uint32_t executable, uint64_t ahead) {
    CallRecord record{.call = of[rank]->calls() + ahead, .executable = executable};
    record.is_load = 1;
    return of[rank]->begin_load(record, never);
  }
  std::vector<std::unique_ptr<CallBoard>> of;
};

TEST_CASE("call board: the last of two ranks to come to a call finds that it differs") {
  Boards boards(2);
  const uint32_t first = GENERATE(0u, 1u), last = 1 - first;
  const bool last_changes = GENERATE(false, true);
  for (int i = 0; i < 3; ++i) {
    CHECK(!boards.call(first, 64));
    CHECK(!boards.call(last, 64));
  }
  CHECK(!boards.call(first, last_changes ? 64 : 65));
  const auto refusal = boards.call(last, last_changes ? 65 : 64);
  REQUIRE(refusal);
  CHECK(refusal->rank == 10 + first);
  CHECK(refusal->calls == 4);
  REQUIRE(refusal->other);
  CHECK(refusal->other->bytes == (last_changes ? 64 : 65));
}

TEST_CASE("call board: each field of a call counts, and a placement that a rank does not have") {
  const std::vector<void (*)(CallRecord&)> changes = {
      [](CallRecord& r) { r.bytes = 1; },      [](CallRecord& r) { r.row_pitch = 1; },
      [](CallRecord& r) { r.offset[0] = 1; },  [](CallRecord& r) { r.offset[1] = 1; },
      [](CallRecord& r) { r.buffer[0] = 1; },  [](CallRecord& r) { r.buffer[1] = 1; },
      [](CallRecord& r) { r.bind = 1; },       [](CallRecord& r) { r.executable = 1; },
      [](CallRecord& r) { r.dtype = 1; },      [](CallRecord& r) { r.reduce = 1; },
      [](CallRecord& r) { r.accumulate = 1; }, [](CallRecord& r) { r.counts[2] = 1; },
  };
  const CallRecord plain;
  for (const auto change : changes) {
    CallRecord other;
    change(other);
    CHECK_FALSE(plain.agrees_with(other));
    CHECK_FALSE(other.agrees_with(plain));
  }
  CallRecord apart, in_place;
  apart.placement = 1;
  in_place.placement = 2;
  CHECK(plain.agrees_with(apart));
  CHECK(in_place.agrees_with(plain));
  CHECK_FALSE(apart.agrees_with(in_place));
  Boards boards(3);
  CHECK(!boards.call(0, 64, 1));
  CHECK(!boards.call(1, 64, 0));
  CHECK(boards.call(2, 64, 2));
}

TEST_CASE("call board: a rank that is ahead is compared call by call") {
  Boards boards(2);
  for (uint64_t i = 0; i < 100; ++i) CHECK(!boards.call(0, i / 3));
  for (uint64_t i = 0; i < 50; ++i) CHECK(!boards.call(1, i / 3));
  CHECK(boards.call(1, 0));
}

TEST_CASE("call board: a rank that waits to load a plan, and one that launches another") {
  Boards boards(2);
  CallRecord loaded{.bytes = 64, .executable = 1};
  CallRecord again = loaded;
  CHECK(!boards.of[0]->next(loaded, never));
  CHECK(!boards.of[1]->next(again, never));
  SECTION("that waits already") {
    CHECK(!boards.load(0, 2, 1));
    CHECK(boards.of[1]->next(again, never));
  }
  SECTION("that comes to wait when the other is further") {
    CHECK(!boards.of[1]->next(again, never));
    CHECK(boards.load(0, 2, 1));
  }
  SECTION("whose call before has been prepared, and is still to be launched") {
    CHECK(!boards.load(0, 2, 2));
    CHECK(!boards.of[1]->next(again, never));
    CHECK(boards.of[1]->next(again, never));
  }
  SECTION("which both load") {
    CHECK(!boards.load(0, 2, 2));
    CHECK(!boards.load(1, 2, 2));
    boards.of[0]->end_load();
    boards.of[1]->end_load();
    CHECK(!boards.of[0]->next(loaded, never));
    CallRecord other{.bytes = 128, .executable = 2};
    CallRecord same = other;
    CHECK(!boards.of[0]->next(other, never));
    CHECK(!boards.of[1]->next(again, never));
    CHECK(!boards.of[1]->next(same, never));
  }
}

TEST_CASE("call board: a rank waits where it is too many different calls ahead, or gives up") {
  Boards boards(2);
  uint64_t made = 0;
  for (; made < CallBoard::kRoom; ++made) REQUIRE(!boards.call(0, made));
  CallRecord next{.bytes = made};
  const auto refusal = boards.of[0]->next(next, [](uint32_t, uint64_t) { return true; });
  REQUIRE(refusal);
  CHECK(!refusal->other);
  CHECK(refusal->rank == 11);
  CHECK(refusal->calls == 0);
  SECTION("the other gets on") {
    Boards more(2);
    constexpr uint64_t kCalls = 3 * CallBoard::kRoom;
    std::atomic<uint64_t> differ{0};
    std::thread ahead([&] {
      for (uint64_t i = 0; i < kCalls; ++i) differ += more.call(0, i).has_value() ? 1 : 0;
    });
    for (uint64_t i = 0; i < kCalls; ++i) differ += more.call(1, i).has_value() ? 1 : 0;
    ahead.join();
    CHECK(differ == 0);
  }
}

TEST_CASE("call board: a rank that gets on is waited for, however long it takes altogether") {
  Boards boards(2);
  uint64_t late = 0;
  for (uint64_t i = 0; i < CallBoard::kRoom + 9; ++i)
    REQUIRE(!boards.call(0, std::max(i, uint64_t{9})));
  RankPatience patience{std::chrono::seconds(2)};
  RankPatience::Clock::time_point now;
  CallRecord next{.bytes = 1};
  CHECK(!boards.of[0]->next(next, [&](uint32_t rank, uint64_t calls) {
    (void)boards.call(1, std::max(late++, uint64_t{9}));
    return patience.is_over(rank, calls, now += std::chrono::seconds(1));
  }));
  CHECK(late == 11);
  now += std::chrono::seconds(2);
  CHECK(patience.is_over(patience.at.first, late - 1, now));
  CHECK(!patience.is_over(patience.at.first + 1, late - 1, now));  // another one
}

/// Ranks make the same calls until one makes another one. All that agree with nothing that they
/// have not seen may go on for a call; no two of them have launched different ones.
TEST_CASE("call board: of calls that come at once no two that differ are both launched") {
  constexpr uint32_t kRanks = 3;
  constexpr uint64_t kCalls = 40;
  std::minstd_rand random(17);
  for (int trial = 0; trial < 2000; ++trial) {
    Boards boards(kRanks);
    const auto odd = static_cast<uint32_t>(random() % kRanks);
    const uint64_t from = random() % kCalls, period = 1 + random() % 4;
    const bool stays = random() % 2 == 0;  // the others change, it does not
    const auto size = [&](uint32_t rank, uint64_t call) {
      const uint64_t common = call / period;
      if (call < from) return common;
      return (rank == odd) == stays ? from / period : 1000 + common;
    };
    std::atomic<bool> failed{false};
    std::vector<uint64_t> launched(kRanks);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        for (uint64_t call = 0; call < kCalls && !failed; ++call) {
          if (boards.call(rank, size(rank, call))) {
            failed = true;
            return;
          }
          launched[rank] = call + 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(failed);
    for (uint32_t a = 0; a < kRanks; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        for (uint64_t call = 0; call < std::min(launched[a], launched[b]); ++call) {
          REQUIRE(size(a, call) == size(b, call));
        }
      }
    }
  }
}

}  // namespace
}  // namespace mscclc
