// One rank of a plan's test run on any device: fills inputs, calls, and checks outputs against the
// collective's definition. What `mscclc run --device` and the tests of the runtime call, every rank
// for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/oracle/output_check.h"
#include "executor/simulator/run_spec.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"

namespace mscclc {

struct RunnerOptions {
  LoadOptions load;
  /// How far into its allocation a buffer begins; may differ between ranks.
  uint64_t input_offset = 0, output_offset = 0;
  /// Lets peers map the buffers; else calls go through staging where the plan needs it.
  bool registered = true;
  /// Words of a row of stamps (executor/stamps.h); 0: none.
  uint32_t stamp_words = 0;
};

/// What a rank has seen of a run.
struct RankResult {
  RunResult run;
  /// Nanoseconds of this machine's steady clock when each call of a barrier was launched, and when
  /// it had ended.
  std::vector<int64_t> entered, left;
  /// What the blocks stamped in the last call, a row each, if that was asked for.
  std::vector<uint64_t> stamps;
  uint32_t stamp_words = 0;
};

/// Thread safety: one thread at a time, as its communicator.
class RankRunner {
 public:
  /// The communicator must outlive the runner.
  RankRunner(Communicator& communicator, std::shared_ptr<const Program> plan,
             const RunnerOptions& options);
  ~RankRunner();

  /// Collective: loads the plan and makes buffers.
  [[nodiscard]] bool load(Diagnostics& diagnostics);
  /// Collective: `spec.iterations` calls in succession, without a barrier between ranks. Every
  /// status other than `right` comes with errors.
  [[nodiscard]] RankResult run(const RunSpec& spec, Diagnostics& diagnostics);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True if no rank left any call of a barrier before all ranks had entered it; results by rank.
[[nodiscard]] bool kept_together(const std::vector<RankResult>& results);

}  // namespace mscclc
