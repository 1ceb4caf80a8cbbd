// The plans that are tried on GPUs, each with what may be asked of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/core/runner/checked_call.h"
#include "tests/gpu/stage/stage.h"
#include "tests/library/library.h"

namespace mscclc::testing {

struct Case {
  std::string name;
  std::shared_ptr<const Program> plan;
  std::vector<Dtype> dtypes;
  std::vector<ReduceOp> ops;
  std::vector<bool> in_place;

  bool holds_sentinels() const;
  /// Widths of elements that need a load of the plan each; {0}: one load serves all.
  std::vector<uint32_t> widths() const;
  /// The types of this width; 0: all.
  std::vector<Dtype> dtypes_of(uint32_t width) const;
  /// `size` in bytes of a message that the plan takes.
  uint64_t bytes(const RunSize& size, Dtype dtype) const;
  /// False: the plan wants messages that divide evenly, and this does not.
  bool takes(uint64_t message, Dtype dtype) const;
};

/// All of the library and of the peer for this number of ranks, and programs whose operands
/// coincide, that the filter lets through.
/// `refused`: names of MSCCL++'s plans that are left out, as the prover refuses them.
std::vector<Case> all_cases(const StageOptions& options, std::vector<std::string>& refused);
std::vector<Case> library_cases(const StageOptions& options);
/// Tries each case, `run` on all ranks (run_series()), and says which goes wrong.
Tally run_cases(const StageOptions& options, const std::vector<Case>& cases,
                const std::function<std::string(Communicator&, const Case&)>& run);
/// plans/<name>.mscl for so many ranks. Errors: what the compiler says.
Result<Case> library_case(std::string_view name, uint32_t ranks);
Result<Case> library_case(std::string_view name, const Defines& defines);

/// A plan that a rank has loaded, and memory for calls of it.
class LoadedCase {
 public:
  /// Collective. nullptr: reported. The communicator and the case must outlive it.
  [[nodiscard]] static std::unique_ptr<LoadedCase> load(Communicator& communicator, const Case& of,
                                                        const LoadOptions& options,
                                                        Diagnostics& diagnostics);
  /// A call that is bound, in memory of its own; collective if the executable's binds are, or if
  /// it is zero copy. nullptr: reported.
  [[nodiscard]] std::unique_ptr<CheckedCall> call(const RunSpec& spec, Diagnostics& diagnostics);
  /// The same in the memory of the last one: calls that share it must not run at once.
  [[nodiscard]] std::unique_ptr<CheckedCall> call_beside(const RunSpec& spec,
                                                         Diagnostics& diagnostics);
  const Case& of() const { return of_; }

 private:
  LoadedCase(Communicator& communicator, const Case& of, const LoadOptions& options)
      : communicator_(communicator), of_(of), options_(options) {}

  Communicator& communicator_;
  const Case& of_;
  const LoadOptions options_;
  std::vector<std::unique_ptr<CallerMemory>> memories_;
  std::unique_ptr<Executable>
      executable_;  ///< ends first: its proxy may read memory after an error
};

}  // namespace mscclc::testing
