// Kernels of plans' own give the simulator's bits, and do so whatever runs first.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <set>

#include "executor/cuda/host/runtime.h"
#include "executor/cuda/testing/same_bits.h"
#include "executor/special/shape.h"
#include "ir/base/sanitized.h"
#include "tests/special/on_host/kernels.h"
#include "tests/special/on_host/plans.h"

namespace mscclc {
namespace {

using cuda::CudaRanks;
using cuda::SameBits;
using device::LaunchPlan;
using Options = CudaRanks::Options;

constexpr uint32_t kThreads = 64;  // of a block, at most: fibers; two warps

const KernelTable& table() {
  static const KernelTable made = [] {
    KernelTable all;
    add_all_kernels(all);
    return all;
  }();
  return made;
}

/// The kernels of a plan, as runtime/communicator/own_kernels has them.
class PlanKernels {
 public:
  PlanKernels(const KernelPlan& plan, size_t number) : digest_(kernel_digest(number)) {
    for (uint32_t r = 0; r < plan.program->ranks.size(); ++r) {
      Diagnostics diagnostics;
      shapes_.push_back(SpecialShape::of(*plan.program, r, diagnostics));
    }
  }
  /// Has some rank kernels?
  bool any() const {
    return std::ranges::any_of(shapes_, [](const auto& shape) { return shape.has_value(); });
  }
  /// Calls that they ran, and that were left to the interpreter.
  uint64_t taken() const { return taken_; }
  uint64_t left() const { return left_; }
  CudaRanks::ChooseKernel choose() {
    return [this](uint32_t rank, const BlockPrograms& programs, LaunchPlan& plan) {
      CudaRanks::Start start = kernel_of(rank, programs, plan);
      if (plan.blocks != 0) ++(start ? taken_ : left_);
      return start;
    };
  }

 private:
  CudaRanks::Start kernel_of(uint32_t rank, const BlockPrograms& programs, LaunchPlan& plan) {
    const std::optional<SpecialShape>& shape = shapes_[rank];
    if (!shape || plan.blocks != shape->blocks()) return {};
    const KernelTable::Bind* bind =
        table().find(digest_ + "_" + shape->key() + "_" + shape->arithmetic(plan.dtype));
    auto lines = std::make_shared<std::vector<SpecialLine>>();
    if (bind == nullptr || !shape->takes(programs, plan.dtype, plan.accumulate, plan.reduce) ||
        !shape->fill(programs, *lines)) {
      return {};
    }
    plan.threads = std::min(shape->threads(), kThreads);
    return [bind, lines, in_memory = shape->in_memory()](const LaunchPlan& placed, void* stream) {
      const cuda::host::Shape grid{placed.blocks, placed.threads, 0, placed.early};
      const SpecialLine* at = lines->data();
      const void* arguments = in_memory ? static_cast<const void*>(&at) : at;
      KernelTable::Bound kernel = (*bind)(placed, arguments);
      cuda::host::Gpu::get().launch(*static_cast<cudaStream_t>(stream), grid,
                                    [kernel, lines] { kernel(); });
      return int{cudaSuccess};
    };
  }

  const std::string digest_;
  std::vector<std::optional<SpecialShape>> shapes_;
  uint64_t taken_ = 0, left_ = 0;
};

std::vector<ReduceOp> reductions_of(const Program& program) {
  if (!program.contract.reduces()) return {ReduceOp::sum};
  return {ReduceOp::sum, ReduceOp::avg};
}

struct Counts {
  uint64_t taken = 0, left = 0;
};

/// Calls of some sizes: such as are cut evenly, so that kernels take them.
void check_plan(const KernelPlan& plan, PlanKernels& kernels, const Options& how, uint64_t seed) {
  SameBits both(*plan.program);
  Diagnostics diagnostics;
  REQUIRE(both.build(diagnostics));
  Options options = how;
  options.apart = true;
  options.own_kernel = kernels.choose();
  for (const Dtype dtype : plan.dtypes) {
    for (const ReduceOp reduce : reductions_of(*plan.program)) {
      // Of each rank's part: lines of all formats, and blocks with some more than others.
      const uint64_t granule = 16 / info(dtype).bytes;
      const uint64_t chunks = std::max<uint64_t>(1, plan.program->contract.ranks);
      for (const uint64_t granules : {15 * chunks * 4, 7 * chunks, 120 * chunks * chunks}) {
        INFO(plan.name << ' ' << info(dtype).name << ' ' << name(reduce) << ' ' << granules
                       << " granules, seed " << seed);
        const std::string fault =
            both.run(both.call(granules * granule, dtype, reduce), options, 3, seed);
        CHECK(fault == "");
        if (!fault.empty()) return;
      }
    }
  }
}

void set_seed(uint64_t seed) { cuda::host::Gpu::get().set_seed(seed); }

/// `pick`: of the plans, by number.
template <class Pick>
void check_plans(const Options& options, uint64_t first_seed, uint64_t seeds, Pick pick) {
  const std::vector<KernelPlan> plans = kernel_plans();
  Counts counts;
  std::set<std::string> never;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (!pick(p)) continue;
    PlanKernels kernels(plans[p], p);
    if (!kernels.any()) continue;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
      set_seed(seed);
      check_plan(plans[p], kernels, options, seed);
    }
    counts.taken += kernels.taken();
    counts.left += kernels.left();
    if (kernels.taken() == 0) never.insert(plans[p].name);
  }
  set_seed(0);
  std::string names;
  for (const std::string& name : never) names += name + "\n";
  WARN(counts.taken << " calls by kernels, " << counts.left << " by the interpreter; never:\n"
                    << names);
  CHECK(counts.taken > 0);
}

TEST_CASE("kernels of plans give the simulator's bits") {
  check_plans({}, 0, 1, [](size_t) { return true; });
}

TEST_CASE("kernels of plans give the simulator's bits whatever runs first") {
  check_plans({}, 1, 1, [](size_t) { return true; });
}

TEST_CASE("kernels of plans called early") {
  check_plans({.calls = 3, .early = true, .frees_next = 2}, 0, 2, [](size_t) { return true; });
}

}  // namespace
}  // namespace mscclc
