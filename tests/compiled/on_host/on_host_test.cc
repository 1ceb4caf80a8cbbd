// Kernels of plans' own give the simulator's bits, and do so whatever runs first.
#include <catch2/catch.hpp>

#include "ir/base/sanitized.h"
#include "tests/compiled/on_host/trial.h"

namespace mscclc {
namespace {

using testing::if_sanitized;
using testing::kSanitized;

/// Each plan that has kernels: they take some calls.
void run_all(const Tries& tries) {
  const std::vector<KernelPlan> plans = kernel_plans();
  uint32_t done = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    // The interpreter runs no row functions.
    if (tries.mixed && !plans[p].program->functions.empty()) continue;
    KernelTrial trial(plans[p], p);
    if (!trial.kernels().any()) continue;
    trial.run(tries);
    CAPTURE(plans[p].name);
    CHECK(trial.kernels().taken() > 0);
    CHECK((trial.kernels().left() > 0) == tries.mixed);
    ++done;
  }
  CHECK(done > 150);
}

TEST_CASE("kernels of plans give the simulator's bits") {
  run_all({.all_types = !kSanitized, .all_sizes = !kSanitized});
}

TEST_CASE("kernels of plans give the simulator's bits whatever runs first") {
  run_all({.seeds = if_sanitized<std::vector<uint64_t>>({1}, {1, 2, 3})});
}

TEST_CASE("ranks with kernels and ranks with the interpreter serve one call with the same bits") {
  run_all({.seeds = if_sanitized<std::vector<uint64_t>>({1}, {1, 2}), .rounds = 4, .mixed = true});
}

TEST_CASE("kernels of plans that begin early") {
  run_all({.options = {.calls = 3, .early = true, .frees_next = 2},
           .seeds = if_sanitized<std::vector<uint64_t>>({1}, {1, 2}),
           .rounds = 1});
}

}  // namespace
}  // namespace mscclc
