// The programs of plans/rows as kernels: a step adds up, computes the row and sends it on, and
// gives the simulator's bits whatever runs first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "executor/compiled/cluster.h"
#include "executor/cuda/host/grid.h"
#include "ir/support/sanitized.h"
#include "tests/compiled/on_host/trial.h"

namespace mscclc {
namespace {

using device::StepKind;

bool has_fused(const CompiledKernelSet& kernels) {
  return kernels.has(StepKind::reduce_apply) || kernels.has(StepKind::reduce_packets_apply);
}

/// Every `step`-th plan.
void run_fused(const Tries& tries, size_t step = 1) {
  const std::vector<KernelPlan> plans = fused_row_plans();
  for (size_t p = step / 2; p < plans.size(); p += step) {
    KernelTrial trial(plans[p], p);
    CAPTURE(plans[p].name);
    REQUIRE(trial.kernels().any());
    CHECK(has_fused(trial.kernels()) == plans[p].is_fused);
    CHECK(trial.kernels().has(StepKind::apply) == !plans[p].is_fused);
    trial.run(tries);
    CHECK(trial.kernels().taken() > 0);
    CHECK(trial.kernels().refused() == 0);
    if (tries.options.calls > 2) CHECK(trial.kernels().moved() > 0);
  }
}

TEST_CASE("fused rows: any two of program and type and ranks and columns are among them") {
  if (testing::kSanitized) return;  // some of them
  std::set<std::string> pairs;
  for (const KernelPlan& plan : fused_row_plans()) {
    const Contract& contract = plan.program->contract;
    const std::string name = plan.program->name, ranks = "R" + std::to_string(contract.ranks),
                      columns = "N" + std::to_string(contract.columns);
    for (const Dtype dtype : plan.dtypes) {
      const std::string type(info(dtype).name);
      pairs.insert({name + type, name + ranks, name + columns, type + ranks, type + columns,
                    ranks + columns});
    }
  }
  // Of thirty-six programs, of ten that are for two ranks, once each, and of one that is not in
  // that folder.
  CHECK(pairs.size() == 36 * (3 + 7 + 6) + 10 * 3 + 3 * (7 + 6) + 7 * 6 + 3);
}

TEST_CASE("fused rows: the simulator's bits") {
  run_fused({.rounds = 1, .all_sizes = true}, testing::amount<size_t>(16, 7, 1));
}

TEST_CASE("fused rows: the simulator's bits whatever runs first") {
  run_fused({.seeds = {1}, .rounds = 2}, testing::amount<size_t>(26, 24, 6));
}

TEST_CASE("fused rows: the simulator's bits where thread blocks are no clusters") {
  run_fused({.rounds = 1, .clusters = false}, testing::amount<size_t>(20, 16, 3));
}

TEST_CASE("fused rows: some thread blocks are clusters, of several sizes") {
  std::set<uint32_t> sizes;
  for (const KernelPlan& plan : fused_row_plans()) {
    Diagnostics diagnostics;
    if (auto shape = CompiledShape::of(*plan.program, 0, diagnostics)) {
      sizes.insert(cluster_of(*shape, *plan.program));
    }
  }
  CHECK(sizes.size() > 3);
}

TEST_CASE("fused rows: kernels that begin early, with lines of earlier calls") {
  run_fused({.options = {.calls = 3, .early = true, .frees_next = 2}, .seeds = {2}, .rounds = 1},
            testing::amount<size_t>(32, 28, 8));
}

/// A rank of the first plan whose name begins so does not come: the others end, and say so.
void check_silent_rank(const std::string& name) {
  CAPTURE(name);
  const std::vector<KernelPlan> plans = fused_row_plans();
  const auto plan = std::ranges::find_if(
      plans, [&](const KernelPlan& named) { return named.name.starts_with(name); });
  REQUIRE(plan != plans.end());
  CompiledKernelSet kernels(*plan, static_cast<size_t>(plan - plans.begin()));
  cuda::SameBits both(*plan->program);
  Diagnostics diagnostics;
  REQUIRE(both.build(diagnostics, RowSteps::together));
  const Call call = both.call(plan->rows[0] * plan->program->contract.columns, plan->dtypes[0]);
  for (const uint64_t seed : {0, 1, 2}) {
    cuda::host::Gpu::get().set_seed(seed);
    const auto text =
        both.run(call, {.apart = true, .silent = 1, .compiled_kernel = kernels.choose(false)},
                 /*rounds=*/1, 0);
    CHECK(text.find("waits for packet") != text.npos);
    CHECK(text.find("then add_rmsnorm") != text.npos);
    CHECK(text.find("the launch hangs") == text.npos);
  }
  cuda::host::Gpu::get().set_seed(0);
  CHECK(kernels.refused() == 0);
}

TEST_CASE("fused rows: a rank that does not come is reported") {
  check_silent_rank("allreduce_norm_1shot of 3 ranks, ");
  check_silent_rank("allreduce_norm_1shot of 3 ranks, 2880 columns in LL16");
}

}  // namespace
}  // namespace mscclc
