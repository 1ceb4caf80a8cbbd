// Measures a machine: times probes twice, and finds the figures with which the cost model predicts
// them.
//
//   Calibration c = calibrate(timer, probes, {.base = machine, .fields = fields}, progress,
//   problems);
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/cost/fit/fit.h"
#include "ir/diagnostics/diagnostic.h"
#include "plans/format/machines/machine.h"
#include "tools/calibrate/probes.h"
#include "tools/measure/call_timer.h"

namespace mscclc::calibrate {

struct CalibrationOptions {
  Machine base;  ///< where the fit begins; what no probe shows stays so. As many GPUs as ranks
  std::vector<const MachineField*> fields;  ///< that are to be found
};

/// A probe and its times, in nanoseconds.
struct ProbeTimes {
  Probe probe;
  double first = 0, second = 0;
  double predicted = 0;  ///< by the figures that were found
  /// How far the second time is from the first: 0.1 is 10 %.
  double apart() const;
  /// What is fitted: whatever disturbs a call makes it longer.
  double least() const;
  /// How far the prediction is from the lesser time.
  double off() const;
};

struct Calibration {
  std::vector<ProbeTimes> probes;
  cost::Fit fit;
};

/// Pieces of work of calibrate() with so many probes, for a Progress.
uint64_t pieces(size_t probes);

/// Errors: those of the timer, of compile_probe() and of the model; wrong-data for a probe whose
/// result is not right.
[[nodiscard]] std::optional<Calibration> calibrate(
    CallTimer& timer, const std::vector<Probe>& probes, const CalibrationOptions& options,
    const std::function<void(const std::string& piece)>& progress, Diagnostics& diagnostics);

/// The figures that calls over links of a node show, or (`network`) those between nodes. The others
/// are of a machine file that is the start.
std::vector<const MachineField*> fields_to_find(bool network);

/// The table of probes, and how many are how far off. `tolerance`: 0.1 is 10 %.
std::string calibration_text(const Calibration& calibration, double tolerance);
/// Probes whose second time differs by more.
size_t count_apart(const Calibration& calibration, double tolerance);

}  // namespace mscclc::calibrate
