// The timeline that 'mscclc run' writes: of a device as its blocks stamped the last call, beside
// the prediction; of the simulator, whose blocks take turns in one thread, the prediction alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/cost/timeline.h"
#include "executor/simulator/run_spec.h"
#include "ir/support/result.h"
#include "plans/format/machines/machine.h"
#include "tools/run/run_work.h"
#include "tools/timeline/measured.h"

namespace mscclc {

/// Is there the machine that the timeline is to be predicted for, and can it run the program?
/// kFine, or, once said why not, the exit code; before anything runs.
[[nodiscard]] int machine_fits(const RunOptions& options, Input& input);

class RunTimeline {
 public:
  /// Predicts the call. nullopt: reported. What is given must outlive it.
  [[nodiscard]] static std::optional<RunTimeline> make(const RunOptions& options,
                                                       const Program& program, const RunSpec& spec,
                                                       Diagnostics& diagnostics);
  /// Of a row of stamps.
  uint32_t stamp_words() const { return timeline::stamp_words(plan_); }
  /// Writes the files that were asked for. `ranks`: what each has stamped; none: it was not run on
  /// a device. `how`: on what it ran.
  Result<void> write(const std::vector<timeline::RankStamps>& ranks, const std::string& how) const;

 private:
  RunTimeline(const RunOptions& options, const Program& program)
      : options_(&options), program_(&program) {}

  const RunOptions* options_;
  const Program* program_;
  Machine machine_;
  std::string title_;
  cost::Timeline plan_;
};

/// Why there can be no timeline of these runs.
std::optional<Error> why_no_timeline(const RunOptions& options, const std::vector<RunSpec>& specs);

}  // namespace mscclc
