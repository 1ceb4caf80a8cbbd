// Compiled kernels give the simulator's bits, and do so whatever runs first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>

#include "executor/compiled/emit.h"
#include "executor/compiled/fused_rows.h"
#include "ir/support/sanitized.h"
#include "tests/compiled/on_host/trial.h"
#include "tests/engines/giving_up.h"

namespace mscclc {
namespace {

using testing::amount;
using testing::kSanitized;
using testing::kThorough;

/// Each plan that has kernels: they take some calls. Unless the test is thorough a third of them,
/// another for each `turn`, 1 to 3; 0: all.
void run_all(Tries tries, size_t turn = 0) {
  const bool some = !kThorough && turn != 0;
  const bool all_types = tries.all_types;
  const std::vector<KernelPlan> plans = kernel_plans();
  uint32_t done = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (some && p % 3 != turn - 1) continue;
    // The interpreter runs no row functions.
    if (tries.mixed && !plans[p].program->functions.empty()) continue;
    KernelTrial trial(plans[p], p);
    if (!trial.kernels().any()) continue;
    tries.all_types = all_types && !plans[p].of_op;  // they have a test of their own
    trial.run(tries);
    CAPTURE(plans[p].name);
    CHECK(trial.kernels().taken() > 0);
    CHECK((trial.kernels().left() > 0) == tries.mixed);
    if (tries.options.calls > 2) CHECK(trial.kernels().moved() > 0);
    ++done;
  }
  CHECK(done > (some ? 40 : 150));
}

TEST_CASE("kernels of plans give the simulator's bits") {
  run_all({.all_types = kThorough, .all_sizes = !kSanitized});
}

TEST_CASE("kernels of every op, format and type give the simulator's bits") {
  const std::vector<KernelPlan> plans = kernel_plans();
  std::map<std::string, size_t> left;  // why none runs them
  size_t done = 0, seed = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (!plans[p].of_op) continue;
    const std::string why = why_no_kernels(plans[p]);
    if (!why.empty()) {
      CHECK(plans[p].name.starts_with("switch_"));
      ++left[why.substr(why.find(": ") + 2)];
      continue;
    }
    const bool moves = std::ranges::none_of(
        kernel_names(plans[p], ""), [](const auto& name) { return !name.ends_with("_moves"); });
    for (const Dtype dtype : plans[p].dtypes) {
      KernelTrial trial(plans[p], p);
      CAPTURE(plans[p].name, info(dtype).name);
      const bool ran = trial.run_type({.rounds = 2}, dtype, seed++ % 3) > 0;
      const bool wide_sentinels = plans[p].name.ends_with("sentinel") && info(dtype).bytes == 8;
      CHECK(ran == ((moves || has_kernels(dtype)) && !wide_sentinels));
      done += ran ? 1 : 0;
      if (ran) continue;
      ++left[wide_sentinels ? "sentinels of 8 bytes" : "sums of " + std::string(info(dtype).name)];
    }
  }
  for (const auto& [why, count] : left) std::cout << count << " by no kernel: " << why << '\n';
  std::cout << done << " of an op, a format and a type by kernels\n";
  CHECK(done > 400);
}

TEST_CASE("kernels of plans give the simulator's bits whatever runs first") {
  run_all({.seeds = amount<std::vector<uint64_t>>({1}, {1}, {1, 2, 3})}, 1);
}

TEST_CASE("ranks with kernels and ranks with the interpreter serve one call with the same bits") {
  run_all({.seeds = amount<std::vector<uint64_t>>({1}, {1}, {1, 2}), .rounds = 4, .mixed = true},
          2);
}

TEST_CASE("kernels do nothing once a block of their rank has given up") {
  const std::vector<KernelPlan> plans = kernel_plans();
  uint32_t done = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (!plans[p].name.starts_with(kSumsApart)) continue;
    const Program& program = *plans[p].program;
    CompiledKernelSet kernels(plans[p], p);
    cuda::CudaRanks ranks(program);
    Diagnostics diagnostics;
    REQUIRE(ranks.build(diagnostics, compiled_row_steps(program)));
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const cuda::CudaRanks::Options options{.threads = seed % 4 < 2 ? 64u : 32u,
                                             .early = seed % 2 == 0,
                                             .frees_next = seed % 3 == 0 ? ~0u : 0u,
                                             .compiled_kernel = kernels.choose(false)};
      CAPTURE(plans[p].name, seed);
      CHECK(sum_after_giving_up(ranks, options, seed) == 11.0f);
      CHECK(begun_after_giving_up(ranks, options, seed) == 3 * blocks_of(program));
      CHECK(counts_stand_after_giving_up(ranks, options, seed) == true);
    }
    CHECK(kernels.taken() == 12 * 3 * 3 * 2);
    ++done;
  }
  CHECK(done == 3);
}

TEST_CASE("kernels of plans that begin early, with lines of earlier calls") {
  run_all({.options = {.calls = 3, .early = true, .frees_next = 2},
           .seeds = amount<std::vector<uint64_t>>({1}, {1}, {1, 2}),
           .rounds = 1},
          3);
}

}  // namespace
}  // namespace mscclc
