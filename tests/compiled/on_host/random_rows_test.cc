// Programs of random row functions by their kernels, in which a step adds up and computes the row,
// or two do: the simulator's bits, which are those of the functions' definition, whatever runs
// first.
#include <catch2/catch.hpp>

#include "tests/compiled/on_host/trial.h"

namespace mscclc {
namespace {

TEST_CASE("random row functions: the simulator's bits whatever runs first") {
  const std::vector<KernelPlan> plans = random_row_plans();
  size_t joined = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    CAPTURE(plans[p].name);
    KernelTrial trial(plans[p], p);
    REQUIRE(trial.kernels().any());
    const bool one_step = trial.kernels().has(device::StepKind::reduce_packets_apply);
    CHECK(trial.kernels().has(device::StepKind::apply) == !one_step);
    joined += one_step ? 1 : 0;
    trial.run({.seeds = {0, 1}, .rounds = 1, .all_sizes = true});
    CHECK(trial.kernels().taken() > 0);
    CHECK(trial.kernels().refused() == 0);
  }
  CHECK(joined > plans.size() / 4);
  CHECK(joined < plans.size());
}

}  // namespace
}  // namespace mscclc
