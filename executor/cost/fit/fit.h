// Finds the figures of a machine with which the model predicts what was measured: least squares of
// the logarithms, by the slopes of the predictions.
//
//   const Fit fit = fit_figures(start, points, [](const FitStep&) {});
//   fit.machine;  // start, with the figures that the points show
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plans/format/machines/machine.h"

namespace mscclc::cost {

/// A time that was measured, and what a machine's figures make of it.
struct FitPoint {
  double ns = 0;  ///< > 0
  /// Nanoseconds, > 0; the same each time. Those of several points are called at once.
  std::function<double(const Machine&)> predict;
};

/// What a figure became.
struct FittedFigure {
  const MachineField* field = nullptr;
  /// How much a prediction grows, at most, when the figure does: 1 where it is the whole time.
  double weight = 0;
  /// False: no point depends on it, and it is what it was at the start.
  bool seen = false;
};

struct Fit {
  Machine machine;
  std::vector<FittedFigure> figures;  ///< those that were asked for
  std::vector<double> predicted;      ///< nanoseconds, by point
};

/// What a step has come to.
struct FitStep {
  uint32_t number = 0;  ///< from 1, at most kFitSteps
  double error = 0;     ///< the mean of |log(predicted / measured)|
};
inline constexpr uint32_t kFitSteps = 40;

/// Changes the figures of `fields` in `start`. A figure that no point depends on stays as it is;
/// two that the points show only together share the change. Calls `each` after each step.
Fit fit_figures(const Machine& start, std::span<const MachineField* const> fields,
                std::span<const FitPoint> points, const std::function<void(const FitStep&)>& each);

}  // namespace mscclc::cost
