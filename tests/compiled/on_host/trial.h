// Calls of a plan by its kernels, compiled for the host, beside the simulator: every bit is the
// same.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/compiled/shape.h"
#include "executor/cuda/testing/same_bits.h"
#include "runtime/core/communicator/compiled_kernels/moved_calls.h"
#include "tests/compiled/on_host/plans.h"

namespace mscclc {

/// The kernels of a plan, as runtime/core/communicator/compiled_kernels has them.
class CompiledKernelSet {
 public:
  CompiledKernelSet(const KernelPlan& plan, size_t number);
  /// Has some rank kernels?
  bool any() const;
  /// Has some block a step of this kind?
  bool has(device::StepKind kind) const;
  /// Calls of ranks that they have run.
  uint64_t taken() const { return taken_; }
  /// Those that were left to the interpreter.
  uint64_t left() const { return left_; }
  /// Those that had the lines of an earlier one, moved.
  uint64_t moved() const { return moved_; }
  /// Those that none takes.
  uint64_t refused() const { return asked_ - taken_ - left_; }
  /// `mixed`: every other launch is left to the interpreter, of ranks and calls as they come.
  /// `clusters`: as on GPUs that have them. `moves`: calls, which are prepared together, have the
  /// lines of the first one, moved.
  cuda::CudaRanks::ChooseKernel choose(bool mixed, bool clusters = true, bool moves = false);

 private:
  using RankCall = cuda::CudaRanks::RankCall;
  cuda::CudaRanks::Start kernel_of(const RankCall& call, device::LaunchPlan& plan, bool clusters);
  bool fill(const RankCall& call, const device::LaunchPlan& plan, CompiledCall& to);

  const std::shared_ptr<const Program> program_;
  const std::string digest_;
  const bool in_place_;
  std::vector<std::optional<CompiledShape>> shapes_;
  std::vector<MovedCalls> earlier_;  ///< by rank; empty: lines are not moved
  uint64_t taken_ = 0, asked_ = 0, left_ = 0, moved_ = 0;
};

/// How much is tried of each plan.
struct Tries {
  cuda::CudaRanks::Options options = {};
  std::vector<uint64_t> seeds = {0};
  uint32_t rounds = 3;
  bool all_types = false, all_sizes = false;
  bool mixed = false;    ///< some ranks' calls by the interpreter
  bool clusters = true;  ///< thread blocks may be some
};

/// Of one plan. The number is that in its list.
class KernelTrial {
 public:
  KernelTrial(const KernelPlan& plan, size_t number) : plan_(plan), kernels_(plan, number) {}
  const CompiledKernelSet& kernels() const { return kernels_; }

  void run(const Tries& tries);
  /// Calls of one type; returns how many its kernels have run.
  uint64_t run_type(const Tries& tries, Dtype dtype, uint64_t seed);

 private:
  void run_sizes(cuda::SameBits& both, const Tries& tries, Dtype dtype, uint64_t seed);
  void run_rows(cuda::SameBits& both, const Tries& tries, Dtype dtype, uint64_t seed);
  void run_call(cuda::SameBits& both, const Tries& tries, const Call& call, uint64_t seed);

  const KernelPlan& plan_;
  CompiledKernelSet kernels_;
};

}  // namespace mscclc
