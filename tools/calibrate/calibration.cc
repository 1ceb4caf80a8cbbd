#include "tools/calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "executor/cost/model.h"

namespace mscclc::calibrate {
namespace {

constexpr double kNear = 0.15;  ///< what predictions aim at

/// A probe's plan, and what predicts it.
struct Prepared {
  std::shared_ptr<const Program> plan;
  std::shared_ptr<cost::Model> model;
};

class Calibrator {
 public:
  Calibrator(CallTimer& timer, const std::vector<Probe>& probes, const CalibrationOptions& options,
             const std::function<void(const std::string&)>& progress, Diagnostics& diagnostics)
      : timer_(timer),
        probes_(probes),
        options_(options),
        progress_(progress),
        diagnostics_(diagnostics) {}

  std::optional<Calibration> run() {
    Calibration out;
    for (const Probe& probe : probes_) {
      if (!prepare(probe)) return std::nullopt;
      out.probes.push_back({.probe = probe});
    }
    if (!measure(out, &ProbeTimes::first)) return std::nullopt;
    find_figures(out);
    if (!measure(out, &ProbeTimes::second)) return std::nullopt;
    return out;
  }

 private:
  bool prepare(const Probe& probe) {
    Prepared& prepared = by_name_[probe.name()];
    if (prepared.plan != nullptr) return true;
    prepared.plan = compile_probe(probe, diagnostics_);
    if (prepared.plan == nullptr) return false;
    prepared.model = std::make_shared<cost::Model>(*prepared.plan);
    // What cannot be predicted now never can.
    return prepared.model->predict(call_of(probe), options_.base, diagnostics_).has_value();
  }

  Call call_of(const Probe& probe) {
    return cost::call_of(*by_name_[probe.name()].plan, probe.bytes, Dtype::f32);
  }

  bool measure(Calibration& out, double ProbeTimes::*time) {
    for (ProbeTimes& times : out.probes) {
      const std::string name = times.probe.name();
      progress_(fmt::format("{}, {} bytes", name, times.probe.bytes));
      const auto taken =
          timer_.time({.plan = by_name_[name].plan, .bytes = times.probe.bytes}, diagnostics_);
      if (!taken) return false;
      if (taken->wrong > 0) {
        diagnostics_.error("wrong-data", {},
                           fmt::format("'{}' of {} bytes gave {} wrong elements", name,
                                       times.probe.bytes, taken->wrong));
        return false;
      }
      times.*time = std::max(taken->ns, 1.0);
    }
    return true;
  }

  void find_figures(Calibration& out) {
    std::vector<cost::FitPoint> points;
    for (const ProbeTimes& times : out.probes) {
      points.push_back({times.first, [this, probe = times.probe](const Machine& machine) {
                          Diagnostics none;  // it was predicted before
                          const auto timeline =
                              by_name_[probe.name()].model->predict(call_of(probe), machine, none);
                          return std::max(timeline->back_to_back_ns, 1.0);
                        }});
    }
    out.fit =
        cost::fit_figures(options_.base, options_.fields, points, [&](const cost::FitStep& step) {
          progress_(fmt::format("step {} of the fit", step.number));
        });
    for (size_t p = 0; p < out.probes.size(); ++p) out.probes[p].predicted = out.fit.predicted[p];
  }

  CallTimer& timer_;
  const std::vector<Probe>& probes_;
  const CalibrationOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  Diagnostics& diagnostics_;
  std::map<std::string, Prepared> by_name_;
};

double share_off(double value, double of) { return std::abs(value / of - 1); }

}  // namespace

double ProbeTimes::apart() const { return share_off(second, first); }
double ProbeTimes::off() const { return share_off(predicted, first); }

uint64_t pieces(size_t probes) { return 2 * probes + cost::kFitSteps; }

std::optional<Calibration> calibrate(CallTimer& timer, const std::vector<Probe>& probes,
                                     const CalibrationOptions& options,
                                     const std::function<void(const std::string&)>& progress,
                                     Diagnostics& diagnostics) {
  return Calibrator(timer, probes, options, progress, diagnostics).run();
}

std::vector<const MachineField*> fields_to_find(bool network) {
  std::vector<const MachineField*> fields;
  for (const MachineField& field : machine_fields()) {
    // A length from which on messages are long is no figure of which times have a slope.
    if (field.group == "switch" || field.name == "long_bytes") continue;
    const bool between = field.group == "nic";
    const bool within = field.group == "nvlink" || field.group == "copy_engine";
    if (network ? !within : !between) fields.push_back(&field);
  }
  return fields;
}

size_t count_apart(const Calibration& calibration, double tolerance) {
  return static_cast<size_t>(std::ranges::count_if(
      calibration.probes, [&](const ProbeTimes& p) { return p.apart() > tolerance; }));
}

std::string calibration_text(const Calibration& calibration, double tolerance) {
  std::string text = fmt::format("{:<50} {:>9} {:>12} {:>12} {:>12}\n", "probe", "bytes", "us",
                                 "again", "predicted");
  size_t near = 0;
  for (const ProbeTimes& p : calibration.probes) {
    near += p.off() <= kNear;
    text += fmt::format("{:<50} {:>9} {:>12.2f} {:>12.2f} {:>12.2f}{}\n", p.probe.name(),
                        p.probe.bytes, p.first / 1e3, p.second / 1e3, p.predicted / 1e3,
                        p.apart() > tolerance ? "  differs" : "");
  }
  text += fmt::format("predicted within {:.0f} %: {} of {} probes\n", 100 * kNear, near,
                      calibration.probes.size());
  text += fmt::format("second time differs by more than {:g} %: {} of {} probes\n", 100 * tolerance,
                      count_apart(calibration, tolerance), calibration.probes.size());
  return text;
}

}  // namespace mscclc::calibrate
