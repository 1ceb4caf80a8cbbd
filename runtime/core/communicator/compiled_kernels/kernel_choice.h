// The kernels that were compiled for a plan (executor/compiled), where there are some: found beside
// its file when it is loaded, or compiled for it then or later; chosen call by call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/block_programs.h"
#include "executor/compiled/fused_rows.h"
#include "executor/compiled/shape.h"
#include "executor/launch.h"
#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "ir/support/result.h"
#include "runtime/api/device.h"

namespace mscclc {

/// A call that such a kernel runs.
struct CompiledCall {
  CompiledKernels::Kernel kernel = nullptr;  ///< nullptr: the interpreter runs it
  std::vector<CompiledLine> lines;           ///< its sizes and addresses
  const void* lines_at = nullptr;  ///< their copy on the device; nullptr: they are parameters
  /// The kernel's second parameter.
  const void* arguments() const {
    return lines_at == nullptr ? static_cast<const void*>(lines.data()) : &lines_at;
  }
};

/// Thread safety: the device's.
class KernelChoice {
 public:
  /// A rank that may have kernels, and has none yet. `digest`: the plan's, in hex. An error: there
  /// are none of such blocks.
  static Result<std::unique_ptr<KernelChoice>> of(const Program& plan, uint32_t rank,
                                                  std::string digest);
  /// What the programs of its calls are lowered with.
  static RowSteps row_steps(const Program& plan) { return compiled_row_steps(plan); }
  /// Loads PLAN.<architecture>.cubin beside `plan_file`, PLAN.json. An error: it stays without.
  Result<void> load_file(const std::string& plan_file, Device& device);
  /// Loads an image of kernels; `from`: where it is from, for messages.
  Result<void> load(std::string_view image, const std::string& from, Device& device);
  bool is_loaded() const { return loaded_ != nullptr; }

  /// Lets a call be run by its kernel, if there is one that does what its programs do, and the
  /// device holds all its blocks at once; sets `launch.threads` and `launch.most_blocks` then.
  void choose(const BlockPrograms& programs, device::LaunchPlan& launch, CompiledCall& call);
  const CompiledShape& shape() const { return shape_; }
  /// Why choose() has found none.
  std::string why_not(const BlockPrograms& programs, const device::LaunchPlan& launch);
  /// REQUIRES: is_loaded().
  CompiledKernels& loaded() const {
    precondition(is_loaded());
    return *loaded_;
  }
  /// Bytes of lines that a call has in memory of the device: too many for parameters. Or 0.
  uint64_t bytes_in_memory() const {
    return shape_.in_memory() ? shape_.lines() * sizeof(CompiledLine) : 0;
  }

  /// What has loaded them: "'/opt/plans/ring.sm_90.cubin'".
  const std::string& from() const { return from_; }
  /// The same, and what the kernels do otherwise than they could, of a plan with row functions.
  std::string description(const Program& plan) const;

 private:
  KernelChoice(CompiledShape shape, uint32_t rank, std::string digest)
      : shape_(std::move(shape)), rank_(rank), digest_(std::move(digest)) {}
  uint32_t most_blocks(CompiledKernels::Kernel kernel, const device::LaunchPlan& launch);

  const CompiledShape shape_;
  const uint32_t rank_;
  const std::string digest_;
  std::string from_;
  std::unique_ptr<CompiledKernels> loaded_;
  std::map<std::string, CompiledKernels::Kernel> kernels_;  ///< by CompiledShape::arithmetic()
  /// How many blocks the device holds at once, of kernels that were asked about. 0: too few.
  std::map<CompiledKernels::Kernel, uint32_t> fitting_;
};

}  // namespace mscclc
