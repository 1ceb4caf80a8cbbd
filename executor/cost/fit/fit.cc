#include "executor/cost/fit/fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "ir/program/rank_parts.h"

namespace mscclc::cost {
namespace {

using Vector = std::vector<double>;

constexpr double kProbe = 0.15;     ///< the change of a figure's logarithm that shows a slope
constexpr double kMaxChange = 0.7;  ///< of a figure's logarithm in a step: a factor of two
constexpr double kSeen = 0.05;      ///< a weight below it is nothing that the points show
constexpr double kDamping[] = {0.0003, 0.003, 0.03, 0.3};
constexpr double kLeaps[] = {0.1, 0.4, 2.5, 10};
constexpr uint32_t kMaxThreads = 16;  ///< more would take longer to start than they save
constexpr double kEnough = 0.002;  ///< a step that gains less, as a share of the error, is the last

/// Figures may be 0, and are whole numbers: so is the change, and at least 1.
uint64_t changed(uint64_t value, double change, const MachineField& field) {
  const double wanted = static_cast<double>(std::max<uint64_t>(value, 1)) *
                        std::exp(std::clamp(change, -kMaxChange, kMaxChange));
  const auto rounded = static_cast<uint64_t>(std::llround(std::max(wanted, 0.0)));
  return std::clamp(rounded, std::max<uint64_t>(field.least, 1), field.most);
}

/// The solution of a x = b by elimination; a is symmetric, and b its last column.
Vector solve(std::vector<Vector> rows) {
  const size_t n = rows.size();
  for (size_t i = 0; i < n; ++i) {
    size_t best = i;
    for (size_t r = i; r < n; ++r) {
      if (std::abs(rows[r][i]) > std::abs(rows[best][i])) best = r;
    }
    std::swap(rows[i], rows[best]);
    if (rows[i][i] == 0) continue;
    for (size_t r = 0; r < n; ++r) {
      const double factor = r == i ? 0 : rows[r][i] / rows[i][i];
      if (factor == 0) continue;
      for (size_t c = i; c <= n; ++c) rows[r][c] -= factor * rows[i][c];
    }
  }
  Vector x(n);
  for (size_t i = 0; i < n; ++i) x[i] = rows[i][i] == 0 ? 0 : rows[i][n] / rows[i][i];
  return x;
}

class Fitter {
 public:
  Fitter(const Machine& start, std::span<const MachineField* const> fields,
         std::span<const FitPoint> points)
      : start_(start),
        machine_(start),
        fields_(fields.begin(), fields.end()),
        points_(points),
        predicted_(predict(start)),
        error_(error_of(predicted_)) {}

  Fit run(const std::function<void(const FitStep&)>& each) {
    for (uint32_t i = 1; i <= kFitSteps && !fields_.empty(); ++i) {
      find_slopes();
      const double before = error_;
      best_ = machine_;
      best_predicted_ = predicted_;
      for (const double damping : kDamping) try_step(damping);
      machine_ = best_;
      predicted_ = best_predicted_;
      if (error_ >= before * (1 - kEnough)) leap();
      each({i, error_});
      if (error_ >= before * (1 - kEnough)) break;
    }
    return result();
  }

 private:
  /// On several cores: nearly all the time of a fit goes into predictions.
  Vector predict(const Machine& machine) const {
    Vector times(points_.size());
    std::atomic<size_t> next = 0;
    const uint32_t cores = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads);
    const size_t threads = std::min<size_t>(cores, points_.size());
    run_threads(static_cast<uint32_t>(threads), [&](uint32_t) {
      for (size_t p = next++; p < points_.size(); p = next++) {
        times[p] = points_[p].predict(machine);
      }
    });
    return times;
  }

  double off(size_t point, const Vector& predicted) const {
    return std::log(points_[point].ns / predicted[point]);
  }

  double error_of(const Vector& predicted) const {
    double sum = 0;
    for (size_t p = 0; p < points_.size(); ++p) sum += std::abs(off(p, predicted));
    return points_.empty() ? 0 : sum / static_cast<double>(points_.size());
  }

  Machine with_changes(const Vector& changes) const {
    Machine machine = machine_;
    for (size_t f = 0; f < fields_.size(); ++f) {
      uint64_t& value = machine.*fields_[f]->value;
      value = changes[f] == 0 ? value : changed(value, changes[f], *fields_[f]);
    }
    return machine;
  }

  void find_slopes() {
    slopes_.assign(fields_.size(), Vector(points_.size()));
    for (size_t f = 0; f < fields_.size(); ++f) {
      Machine machine = machine_;
      uint64_t& value = machine.*fields_[f]->value;
      const uint64_t old = std::max<uint64_t>(value, 1);
      value = std::max(changed(old, kProbe, *fields_[f]), old + 1);
      const double change = std::log(static_cast<double>(value) / static_cast<double>(old));
      const Vector predicted = predict(machine);
      for (size_t p = 0; p < points_.size(); ++p) {
        slopes_[f][p] = std::log(predicted[p] / predicted_[p]) / change;
      }
    }
  }

  /// Looks at the step that `damping` gives, and at half of it.
  void try_step(double damping) {
    const size_t n = fields_.size();
    std::vector<Vector> rows(n, Vector(n + 1));
    double sum = 0;
    for (size_t p = 0; p < points_.size(); ++p) {
      // What is far off counts less, as one such point is no reason to move all others.
      const double weight = 1 / std::max(std::abs(off(p, predicted_)), 0.05);
      sum += weight;
      for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < n; ++k) rows[i][k] += weight * slopes_[i][p] * slopes_[k][p];
        rows[i][n] += weight * slopes_[i][p] * off(p, predicted_);
      }
    }
    for (size_t i = 0; i < n; ++i) rows[i][i] += damping * sum / 10;
    const Vector changes = solve(std::move(rows));
    for (const double share : {1.0, 0.5}) {
      Vector part = changes;
      for (double& c : part) c *= share;
      keep_if_better(with_changes(part));
    }
  }

  /// Where slopes lead no further: each figure in turn becomes much smaller or larger. One that
  /// begins far from what it is has no slope.
  void leap() {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const Machine from = best_;
      for (const double factor : kLeaps) {
        const MachineField& field = *fields_[f];
        Machine machine = from;
        const uint64_t old = std::max<uint64_t>(machine.*field.value, 1);
        const double value = std::round(static_cast<double>(old) * factor);
        if (value < static_cast<double>(field.least) || value > static_cast<double>(field.most)) {
          continue;
        }
        machine.*field.value = static_cast<uint64_t>(value);
        keep_if_better(machine);
      }
    }
    machine_ = best_;
    predicted_ = best_predicted_;
  }

  void keep_if_better(const Machine& machine) {
    Vector predicted = predict(machine);
    const double error = error_of(predicted);
    if (error >= error_) return;
    best_ = machine;
    best_predicted_ = std::move(predicted);
    error_ = error;
  }

  Fit result() {
    find_slopes();
    const Machine found = machine_;
    Fit fit{found, {}, {}};
    for (size_t f = 0; f < fields_.size(); ++f) {
      const MachineField& field = *fields_[f];
      double most = 0;
      for (const double slope : slopes_[f]) most = std::max(most, std::abs(slope));
      const bool seen = most >= kSeen || is_missed(found, field);
      if (!seen) fit.machine.*field.value = start_.*field.value;
      fit.figures.push_back({&field, most, seen});
    }
    fit.predicted = predict(fit.machine);
    return fit;
  }

  /// Does some prediction change when a figure becomes what it was at the start? One that was found
  /// to be next to nothing has no weight, and all others were found beside it.
  bool is_missed(const Machine& found, const MachineField& field) const {
    Machine machine = found;
    machine.*field.value = start_.*field.value;
    const Vector predicted = predict(machine);
    for (size_t p = 0; p < points_.size(); ++p) {
      if (std::abs(std::log(predicted[p] / predicted_[p])) >= kSeen) return true;
    }
    return false;
  }

  const Machine start_;
  Machine machine_, best_;
  const std::vector<const MachineField*> fields_;
  const std::span<const FitPoint> points_;
  Vector predicted_, best_predicted_;
  double error_;
  std::vector<Vector> slopes_;  ///< by field and point: d log(time) / d log(figure)
};

}  // namespace

Fit fit_figures(const Machine& start, std::span<const MachineField* const> fields,
                std::span<const FitPoint> points, const std::function<void(const FitStep&)>& each) {
  return Fitter(start, fields, points).run(each);
}

}  // namespace mscclc::cost
