// Calls of row functions in which ranks or blocks have no rows, or one: their kernels take them all
// and give the simulator's bits, whatever runs first.
#include <catch2/catch.hpp>

#include "tests/compiled/on_host/trial.h"

namespace mscclc {
namespace {

void run_uneven(const Tries& tries) {
  const std::vector<KernelPlan> plans = uneven_row_plans();
  for (size_t p = 0; p < plans.size(); ++p) {
    CAPTURE(plans[p].name);
    KernelTrial trial(plans[p], p);
    trial.run(tries);
    CHECK(trial.kernels().taken() > 0);
    CHECK(trial.kernels().refused() == 0);
  }
}

TEST_CASE("uneven rows: the simulator's bits whatever runs first") {
  run_uneven({.seeds = {0, 1}, .all_types = true, .all_sizes = true});
}

TEST_CASE("uneven rows: kernels that begin early") {
  run_uneven({.options = {.calls = 3, .early = true, .frees_next = 2},
              .seeds = {2},
              .all_types = true,
              .all_sizes = true});
}

}  // namespace
}  // namespace mscclc
