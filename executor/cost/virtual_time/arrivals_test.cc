#include "executor/cost/virtual_time/arrivals.h"

#include <catch2/catch.hpp>

namespace mscclc::cost {
namespace {

using Woken = std::vector<uint32_t>;

Woken add_range(Arrivals& arrivals, uint64_t begin, uint64_t end) {
  Woken woken;
  arrivals.add({begin, end}, woken);
  return woken;
}

}  // namespace

TEST_CASE("a range has come when all of it has, in whatever pieces") {
  Arrivals arrivals;
  CHECK_FALSE(arrivals.has({10, 30}));
  add_range(arrivals, 0, 15);
  add_range(arrivals, 20, 40);
  CHECK_FALSE(arrivals.has({10, 30}));
  add_range(arrivals, 15, 20);
  CHECK(arrivals.has({10, 30}));
  CHECK(arrivals.has({0, 40}));
  CHECK_FALSE(arrivals.has({0, 41}));
}

TEST_CASE("waiters are woken once, by the piece that completes their range") {
  Arrivals arrivals;
  arrivals.wait({0, 20}, 1);
  arrivals.wait({10, 20}, 2);
  CHECK(add_range(arrivals, 10, 20) == Woken{2});
  CHECK(add_range(arrivals, 30, 40) == Woken{});
  CHECK(add_range(arrivals, 0, 10) == Woken{1});
  CHECK(add_range(arrivals, 20, 30) == Woken{});
}

TEST_CASE("packets count the messages on their way, of all that a range touches") {
  SlotHops hops;
  CHECK(hops.most({0, 100}) == 0);
  hops.came({0, 10}, 1);
  hops.came({10, 30}, 4);
  hops.came({50, 60}, 2);
  CHECK(hops.most({0, 10}) == 1);
  CHECK(hops.most({5, 11}) == 4);
  CHECK(hops.most({20, 25}) == 4);
  CHECK(hops.most({30, 50}) == 0);
  CHECK(hops.most({30, 51}) == 2);
  hops.came({10, 30}, 7);
  CHECK(hops.most({0, 100}) == 7);
}

}  // namespace mscclc::cost
