// Some jobs with mixed faults; mixed_faults_full runs a thousand.
#include "tests/nodes/mixed_faults.h"

#include <catch2/catch.hpp>
#include <iostream>

namespace mscclc {
namespace {

void try_some(bool verbs) {
  for (uint64_t seed = 0; seed < 9; ++seed) {
    testing::FaultTrial trial = testing::draw_faults(seed, verbs);
    INFO("seed " << seed << ", " << text(trial));
    testing::FaultOutcome outcome = testing::try_faults(trial);
    if (trial.kind == testing::FaultKind::cut && !outcome.wrong.empty()) {
      trial.slowness = 10;  // a rank that got no processor may have been taken for dead
      outcome = testing::try_faults(trial);
    }
    if (!outcome.left_out.empty()) {
      std::cout << "left out: " << outcome.left_out << "\n";
      return;
    }
    CHECK(outcome.wrong == "");
    CHECK_FALSE(outcome.hung);
    CHECK(outcome.leaked == 0);
    if (trial.kind == testing::FaultKind::lossy) CHECK(outcome.right);
  }
}

TEST_CASE(
    "jobs at which something goes wrong end, name the ranks that are gone, and leave nothing "
    "behind") {
  try_some(false);
}

TEST_CASE("so do jobs over verbs, and leave no queue pairs and memory regions") { try_some(true); }

TEST_CASE("jobs whose ranks are stopped for a while come to right results") {
  testing::FaultTrial trial{.kind = testing::FaultKind::paused,
                            .program = "allreduce_hier",
                            .sizes = {4096},
                            .times = 2,
                            .pauses = {{1, 20'000, 200}, {1, 20'000, 200}, {2, 0, 300}}};
  for (const bool verbs : {false, true}) {
    trial.verbs = verbs;
    const testing::FaultOutcome outcome = testing::try_faults(trial);
    if (!outcome.left_out.empty()) continue;
    CHECK(outcome.wrong == "");
    CHECK(outcome.right);
    CHECK(outcome.pauses == trial.pauses.size());
  }
}

}  // namespace
}  // namespace mscclc
