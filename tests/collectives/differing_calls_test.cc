// Ranks whose calls differ, after calls that were the same: every rank hears of it, none waits for
// what does not come, and nothing is written that no rank has named.
#include "tests/collectives/differing_calls.h"

#include <catch2/catch.hpp>

namespace mscclc::testing {
namespace {

void check(const DifferingTrial& trial) {
  INFO(text(trial));
  const DifferingOutcome outcome = try_differing(trial);
  CHECK(outcome.wrong == "");
  CHECK(outcome.beyond == 0);
}

TEST_CASE("calls that differ: each difference, at the first call and later") {
  for (uint32_t d = 0; d < kDifferences; ++d) {
    const auto difference = static_cast<Difference>(d);
    const bool needs_registered =
        difference == Difference::offset || difference == Difference::registration;
    for (const bool registered : {false, true}) {
      if (needs_registered && !registered) continue;
      for (const uint32_t from : {0u, 5u}) {
        for (const bool stays : {false, true}) {
          if (difference == Difference::skipped && stays) continue;
          check({.seed = 7,
                 .ranks = 3,
                 .odd = 1,
                 .difference = difference,
                 .registered = registered,
                 .from = from,
                 .stays = stays});
        }
      }
    }
  }
}

TEST_CASE("calls that differ: 999,999 of 1,000,000 elements in registered memory, as processes") {
  for (const uint32_t odd : {0u, 1u}) {
    check({.seed = 3,
           .ranks = 2,
           .odd = odd,
           .difference = Difference::shorter,
           .registered = true,
           .from = 4,
           .processes = true});
  }
}

// Over lanes.
TEST_CASE("calls that differ: between nodes") {
  for (const Difference difference :
       {Difference::shorter, Difference::longer, Difference::far_longer, Difference::type,
        Difference::reduction}) {
    for (const uint32_t on_node : {1u, 2u}) {
      for (const uint32_t odd : {0u, 3u}) {
        for (const bool stays : {false, true}) {
          check({.seed = 11,
                 .ranks = 4,
                 .odd = odd,
                 .difference = difference,
                 .from = 5,
                 .stays = stays,
                 .on_node = on_node});
        }
      }
    }
  }
}

TEST_CASE("calls that differ: drawn ones") {
  for (uint64_t seed = 0; seed < 60; ++seed) check(draw_differing(seed));
}

}  // namespace
}  // namespace mscclc::testing
