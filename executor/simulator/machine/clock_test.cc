#include "executor/simulator/machine/clock.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

TEST_CASE("a clock knows what it has learned, and no more") {
  Clock clock;
  CHECK(!clock.knows(0, 1));
  CHECK(clock.tick(700) == 1);
  CHECK(clock.tick(700) == 2);
  CHECK(clock.knows(700, 2));
  CHECK(!clock.knows(700, 3));
  CHECK(!clock.knows(699, 1));
  CHECK(!clock.knows(100'000, 1));
}

TEST_CASE("clocks that join know what either knew") {
  Clock a, b;
  a.tick(3);
  a.tick(3);
  a.tick(900);
  b.tick(3);
  b.tick(4);
  a.join(b);
  CHECK(a.knows(3, 2));
  CHECK(a.knows(4, 1));
  CHECK(a.knows(900, 1));
  CHECK(!b.knows(3, 2));
  CHECK(!b.knows(900, 1));
}

TEST_CASE("a copy of a clock does not follow it") {
  Clock clock;
  clock.tick(5);
  const Clock before = clock;
  clock.tick(5);
  CHECK(clock.knows(5, 2));
  CHECK(!before.knows(5, 2));
}

TEST_CASE("clocks share what they know alike") {
  constexpr uint32_t kProcesses = 10 * Clock::kPage;
  Clock all;
  for (uint32_t p = 0; p < kProcesses; ++p) all.tick(p);
  CHECK(all.own_pages() == 10);
  Clock late = all;  // as a late access keeps one
  CHECK(late.own_pages() == 0);
  Clock other;
  other.tick(0);
  CHECK(other.own_pages() == 1);
  other.join(all);  // it knew nothing else
  CHECK(other.own_pages() == 0);
  all.tick(0);
  CHECK(all.own_pages() == 1);
  other.tick(1);
  other.join(all);  // each knows something here that the other does not
  CHECK(other.own_pages() == 1);
}

}  // namespace
}  // namespace mscclc
