#include "tests/compiled/on_host/trial.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/compiled/cluster.h"
#include "executor/compiled/fused_rows.h"
#include "executor/cuda/host/runtime.h"
#include "executor/lower.h"
#include "tests/compiled/on_host/kernels.h"

namespace mscclc {
namespace {

using cuda::CudaRanks;
using cuda::SameBits;
using device::LaunchPlan;

const KernelTable& table() {
  static const KernelTable made = [] {
    KernelTable all;
    add_all_kernels(all);
    return all;
  }();
  return made;
}

std::vector<ReduceOp> reductions_of(const Program& program) {
  const PlanUse use = use_of(program);
  const bool averages = use.fixed == ReduceOp::call && use.contributions != 0;
  if (!program.contract.reduces() || !averages) return {ReduceOp::sum};
  return {ReduceOp::sum, ReduceOp::avg};
}

}  // namespace

CompiledKernelSet::CompiledKernelSet(const KernelPlan& plan, size_t number)
    : program_(plan.program), digest_(kernel_digest(number)), in_place_(plan.in_place) {
  for (uint32_t r = 0; r < plan.program->ranks.size(); ++r) {
    Diagnostics diagnostics;
    shapes_.push_back(CompiledShape::of(*plan.program, r, diagnostics));
  }
}

bool CompiledKernelSet::any() const {
  return std::ranges::any_of(shapes_, [](const auto& shape) { return shape.has_value(); });
}

bool CompiledKernelSet::has(device::StepKind kind) const {
  return std::ranges::any_of(shapes_, [&](const std::optional<CompiledShape>& shape) {
    return shape && std::ranges::any_of(shape->codes(), [&](const CompiledCode& code) {
             return std::ranges::find(code.steps, kind, &CompiledStep::kind) != code.steps.end();
           });
  });
}

CudaRanks::ChooseKernel CompiledKernelSet::choose(bool mixed, bool clusters, bool moves) {
  earlier_.assign(moves ? shapes_.size() : 0, {});
  return [this, mixed, clusters](const RankCall& call, LaunchPlan& plan) {
    const uint64_t asked = asked_++;
    if (mixed && (asked + asked / 3) % 2 == 0) {
      ++left_;
      return CudaRanks::Start();
    }
    CudaRanks::Start start = kernel_of(call, plan, clusters);
    taken_ += start ? 1 : 0;
    return start;
  };
}

bool CompiledKernelSet::fill(const RankCall& call, const LaunchPlan& plan, CompiledCall& to) {
  const CompiledShape& shape = *shapes_[call.rank];
  if (!shape.fill(call.programs, to.lines)) return false;
  if (earlier_.empty()) return true;
  const auto fill = [&](const BlockPrograms::Places& there, std::vector<CompiledLine>& lines) {
    BlockPrograms programs;
    return call.pack(there, programs) && shape.fill(programs, lines);
  };
  MovedCalls& earlier = earlier_[call.rank];
  const std::vector<CompiledLine> lines = to.lines;
  LaunchPlan launch = plan;
  if (earlier.move({call.places, 0, in_place_}, fill, launch, to)) {
    CHECK(to.lines == lines);
    ++moved_;
    return true;
  }
  to.kernel = &shape;
  earlier.keep({call.places, 0, in_place_}, plan, to);
  return true;
}

CudaRanks::Start CompiledKernelSet::kernel_of(const RankCall& call, LaunchPlan& plan,
                                              bool clusters) {
  const std::optional<CompiledShape>& shape = shapes_[call.rank];
  if (!shape || plan.blocks != shape->blocks()) return {};
  const KernelTable::Bind* bind =
      table().find(digest_ + "_" + shape->key() + "_" + shape->arithmetic(plan.dtype));
  auto compiled = std::make_shared<CompiledCall>();
  if (bind == nullptr || !shape->takes(call.programs, plan.dtype, plan.accumulate, plan.reduce) ||
      !fill(call, plan, *compiled)) {
    return {};
  }
  plan.threads = shape->has_rows() ? shape->threads() : std::min(shape->threads(), plan.threads);
  const uint32_t cluster = clusters ? cluster_of(*shape, *program_) : 1;
  return [bind, compiled, cluster, in_memory = shape->in_memory()](const LaunchPlan& placed,
                                                                   void* stream) {
    const cuda::host::Shape grid{placed.blocks * cluster, placed.threads / cluster, 0, placed.early,
                                 cluster};
    const CompiledLine* at = compiled->lines.data();
    const void* arguments = in_memory ? static_cast<const void*>(&at) : at;
    KernelTable::Bound kernel = (*bind)(placed, arguments);
    cuda::host::Gpu::get().launch(*static_cast<cudaStream_t>(stream), grid,
                                  [kernel, compiled] { kernel(); });
    return int{cudaSuccess};
  };
}

void KernelTrial::run(const Tries& tries) {
  SameBits both(*plan_.program);
  Diagnostics diagnostics;
  REQUIRE(both.build(diagnostics, compiled_row_steps(*plan_.program)));
  for (const uint64_t seed : tries.seeds) {
    for (const Dtype dtype : plan_.dtypes) {
      if (!tries.all_types && dtype != plan_.dtypes[seed % plan_.dtypes.size()]) continue;
      if (plan_.rows.empty()) {
        run_sizes(both, tries, dtype, seed);
      } else {
        run_rows(both, tries, dtype, seed);
      }
    }
  }
  cuda::host::Gpu::get().set_seed(0);
}

uint64_t KernelTrial::run_type(const Tries& tries, Dtype dtype, uint64_t seed) {
  SameBits both(*plan_.program);
  Diagnostics diagnostics;
  REQUIRE(both.build(diagnostics, compiled_row_steps(*plan_.program)));
  const uint64_t before = kernels_.taken();
  run_sizes(both, tries, dtype, seed);
  cuda::host::Gpu::get().set_seed(0);
  return kernels_.taken() - before;
}

/// Sizes at which blocks have lines of all formats, some of them more than others, and at which
/// kernels take the calls: those of some plans only where chunks are cut alike.
void KernelTrial::run_sizes(SameBits& both, const Tries& tries, Dtype dtype, uint64_t seed) {
  const uint64_t granule = 16 / info(dtype).bytes;
  const Contract& contract = plan_.program->contract;
  const bool custom = contract.kind == CollectiveKind::custom;
  const uint64_t ranks = contract.ranks;
  const uint64_t cut = std::max<uint64_t>(ranks, custom ? contract.part_chunks() : 1);
  const uint64_t taken = kernels_.taken();
  for (const uint64_t granules : {7 * cut, 60 * cut, 120 * ranks * cut}) {
    if (!tries.all_sizes && kernels_.taken() != taken && granules != 7 * cut) return;
    for (const ReduceOp reduce : reductions_of(*plan_.program)) {
      if (reduce == ReduceOp::avg && !tries.all_types && seed % 2 == 0) continue;
      run_call(both, tries, both.call(granules * granule, dtype, reduce), seed);
    }
  }
}

void KernelTrial::run_rows(SameBits& both, const Tries& tries, Dtype dtype, uint64_t seed) {
  for (const uint64_t rows : plan_.rows) {
    if (!tries.all_sizes && rows != plan_.rows[0]) return;
    const ReduceOp reduce = seed % 2 == 0 ? ReduceOp::sum : ReduceOp::avg;
    run_call(both, tries, both.call(rows * plan_.program->contract.columns, dtype, reduce), seed);
  }
}

void KernelTrial::run_call(SameBits& both, const Tries& tries, const Call& call, uint64_t seed) {
  CudaRanks::Options options = tries.options;
  options.apart = true;
  options.in_place = plan_.in_place;
  options.threads = seed % 2 == 0 ? 64 : 32;
  options.compiled_kernel = kernels_.choose(tries.mixed, tries.clusters, options.calls > 2);
  INFO(plan_.name << ' ' << info(call.dtype).name << ' ' << name(call.reduce) << ' '
                  << call.part_bytes << " bytes, seed " << seed);
  cuda::host::Gpu::get().set_seed(seed);
  CHECK(both.run(call, options, tries.rounds, seed) == "");
  CHECK(cuda::host::Gpu::get().most_at_once() <= (options.early ? 2 : 1));
}

}  // namespace mscclc
