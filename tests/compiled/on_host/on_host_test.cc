// Kernels of plans' own give the simulator's bits, and do so whatever runs first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>

#include "executor/compiled/shape.h"
#include "executor/cuda/host/runtime.h"
#include "executor/cuda/testing/same_bits.h"
#include "ir/base/sanitized.h"
#include "tests/compiled/on_host/kernels.h"
#include "tests/compiled/on_host/plans.h"

namespace mscclc {
namespace {

using cuda::CudaRanks;
using cuda::SameBits;
using device::LaunchPlan;
using testing::if_sanitized;
using testing::kSanitized;
using Options = CudaRanks::Options;

const KernelTable& table() {
  static const KernelTable made = [] {
    KernelTable all;
    add_all_kernels(all);
    return all;
  }();
  return made;
}

/// The kernels of a plan, as runtime/core/communicator/compiled_kernels has them.
class PlanKernels {
 public:
  PlanKernels(const KernelPlan& plan, size_t number) : digest_(kernel_digest(number)) {
    for (uint32_t r = 0; r < plan.program->ranks.size(); ++r) {
      Diagnostics diagnostics;
      shapes_.push_back(CompiledShape::of(*plan.program, r, diagnostics));
    }
  }
  /// Has some rank kernels?
  bool any() const {
    return std::ranges::any_of(shapes_, [](const auto& shape) { return shape.has_value(); });
  }
  /// Calls of ranks that they have run.
  uint64_t taken() const { return taken_; }
  /// Those that were left to the interpreter.
  uint64_t left() const { return left_; }
  /// `mixed`: every other launch is left to the interpreter, of ranks and calls as they come.
  CudaRanks::ChooseKernel choose(bool mixed) {
    return [this, mixed](uint32_t rank, const BlockPrograms& programs, LaunchPlan& plan) {
      const uint64_t asked = asked_++;
      if (mixed && (asked + asked / 3) % 2 == 0) {
        ++left_;
        return CudaRanks::Start();
      }
      CudaRanks::Start start = kernel_of(rank, programs, plan);
      taken_ += start ? 1 : 0;
      return start;
    };
  }

 private:
  CudaRanks::Start kernel_of(uint32_t rank, const BlockPrograms& programs, LaunchPlan& plan) {
    const std::optional<CompiledShape>& shape = shapes_[rank];
    if (!shape || plan.blocks != shape->blocks()) return {};
    const KernelTable::Bind* bind =
        table().find(digest_ + "_" + shape->key() + "_" + shape->arithmetic(plan.dtype));
    auto lines = std::make_shared<std::vector<CompiledLine>>();
    if (bind == nullptr || !shape->takes(programs, plan.dtype, plan.accumulate, plan.reduce) ||
        !shape->fill(programs, *lines)) {
      return {};
    }
    plan.threads = shape->has_rows() ? shape->threads() : std::min(shape->threads(), plan.threads);
    return [bind, lines, in_memory = shape->in_memory()](const LaunchPlan& placed, void* stream) {
      const cuda::host::Shape grid{placed.blocks, placed.threads, 0, placed.early};
      const CompiledLine* at = lines->data();
      const void* arguments = in_memory ? static_cast<const void*>(&at) : at;
      KernelTable::Bound kernel = (*bind)(placed, arguments);
      cuda::host::Gpu::get().launch(*static_cast<cudaStream_t>(stream), grid,
                                    [kernel, lines] { kernel(); });
      return int{cudaSuccess};
    };
  }

  const std::string digest_;
  std::vector<std::optional<CompiledShape>> shapes_;
  uint64_t taken_ = 0, asked_ = 0, left_ = 0;
};

std::vector<ReduceOp> reductions_of(const Program& program) {
  if (!program.contract.reduces()) return {ReduceOp::sum};
  return {ReduceOp::sum, ReduceOp::avg};
}

/// How much is tried of each plan.
struct Tries {
  Options options = {};
  std::vector<uint64_t> seeds = {0};
  uint32_t rounds = 3;
  bool all_types = false, all_sizes = false;
  bool mixed = false;  ///< some ranks' calls by the interpreter
};

class Trial {
 public:
  Trial(const KernelPlan& plan, size_t number) : plan_(plan), kernels_(plan, number) {}
  const PlanKernels& kernels() const { return kernels_; }

  void run(const Tries& tries) {
    SameBits both(*plan_.program);
    Diagnostics diagnostics;
    REQUIRE(both.build(diagnostics));
    for (const uint64_t seed : tries.seeds) {
      for (const Dtype dtype : plan_.dtypes) {
        if (!tries.all_types && dtype != plan_.dtypes[seed % plan_.dtypes.size()]) continue;
        run_sizes(both, tries, dtype, seed);
      }
    }
    cuda::host::Gpu::get().set_seed(0);
  }

 private:
  /// Sizes at which blocks have lines of all formats, some of them more than others, and at which
  /// kernels take the calls: those of some plans only where chunks are cut alike.
  void run_sizes(SameBits& both, const Tries& tries, Dtype dtype, uint64_t seed) {
    const uint64_t granule = 16 / info(dtype).bytes;
    const Contract& contract = plan_.program->contract;
    const bool custom = contract.kind == CollectiveKind::custom;
    const uint64_t ranks = contract.ranks;
    const uint64_t cut = std::max<uint64_t>(ranks, custom ? contract.part_chunks() : 1);
    const uint64_t taken = kernels_.taken();
    if (contract.columns != 0) {
      for (const uint64_t rows : {5, 13}) {
        if (!tries.all_sizes && rows != 5) return;
        const ReduceOp reduce = seed % 2 == 0 ? ReduceOp::sum : ReduceOp::avg;
        run(both, tries, both.call(rows * ranks * contract.columns, dtype, reduce), seed);
      }
      return;
    }
    for (const uint64_t granules : {7 * cut, 60 * cut, 120 * ranks * cut}) {
      if (!tries.all_sizes && kernels_.taken() != taken && granules != 7 * cut) return;
      for (const ReduceOp reduce : reductions_of(*plan_.program)) {
        if (reduce == ReduceOp::avg && !tries.all_types && seed % 2 == 0) continue;
        run(both, tries, both.call(granules * granule, dtype, reduce), seed);
      }
    }
  }
  void run(SameBits& both, const Tries& tries, const Call& call, uint64_t seed) {
    Options options = tries.options;
    options.apart = true;
    options.threads = seed % 2 == 0 ? 64 : 32;
    options.own_kernel = kernels_.choose(tries.mixed);
    INFO(plan_.name << ' ' << info(call.dtype).name << ' ' << name(call.reduce) << ' '
                    << call.part_bytes << " bytes, seed " << seed);
    cuda::host::Gpu::get().set_seed(seed);
    CHECK(both.run(call, options, tries.rounds, seed) == "");
    CHECK(cuda::host::Gpu::get().most_at_once() <= (options.early ? 2 : 1));
  }

  const KernelPlan& plan_;
  PlanKernels kernels_;
};

/// Each plan that has kernels: they take some calls.
void run_all(const Tries& tries) {
  const std::vector<KernelPlan> plans = kernel_plans();
  uint32_t done = 0;
  for (size_t p = 0; p < plans.size(); ++p) {
    // The interpreter runs no row functions.
    if (tries.mixed && !plans[p].program->functions.empty()) continue;
    Trial trial(plans[p], p);
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
