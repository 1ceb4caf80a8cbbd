#include "tools/report/clock_offsets.h"

#include <catch2/catch.hpp>

namespace mscclc {

TEST_CASE("two clocks are as far apart as their exchanges allow") {
  // The second clock is 1000 ahead: both enter and leave exchange 1 at about the same time.
  const ClockStays a = {{1, {100, 140}}, {2, {500, 900}}},
                   b = {{1, {1105, 1150}}, {2, {1880, 1895}}};
  const ClockOffset offset = clock_offset(a, b, false);
  REQUIRE(offset.known);
  // From exchange 2: at least 1880 - 900; from exchange 1: at most 1150 - 100.
  CHECK(offset.ahead - offset.give_or_take <= 1000);
  CHECK(offset.ahead + offset.give_or_take >= 1000);
  CHECK(offset.ahead == 1015);
  CHECK(offset.give_or_take == 35);
  const ClockOffset back = clock_offset(b, a, false);
  CHECK(back.ahead == -1015);
}

TEST_CASE("ranks of one machine have one clock, unless that cannot be") {
  const ClockStays a = {{1, {100, 140}}}, b = {{1, {105, 150}}}, far = {{1, {9000, 9050}}};
  CHECK(clock_offset(a, b, true).ahead == 0);
  CHECK(clock_offset(a, b, true).give_or_take == 0);
  CHECK(clock_offset(a, far, true).ahead > 8000);
}

TEST_CASE("of clocks that drift, the last exchanges that agree count") {
  ClockStays a, b;
  for (int64_t i = 1; i <= 20; ++i) {
    const int64_t at = i * 1'000'000'000, drift = i > 16 ? 5'000'000 : 0;
    a[static_cast<uint64_t>(i)] = {at, at + 400};
    b[static_cast<uint64_t>(i)] = {at + drift, at + drift + 600};
  }
  const ClockOffset offset = clock_offset(a, b, false);
  REQUIRE(offset.known);
  CHECK(offset.ahead == 5'000'100);
  CHECK(offset.give_or_take == 500);
}

TEST_CASE("ranks that never met, or a mark that cannot be") {
  CHECK_FALSE(clock_offset({{1, {0, 1}}}, {{2, {0, 1}}}, true).known);
  CHECK_FALSE(clock_offset({{1, {0, 1}}}, {{1, {50, 10}}}, false).known);
}

}  // namespace mscclc
