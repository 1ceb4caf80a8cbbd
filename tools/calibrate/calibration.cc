#include "tools/calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "executor/cost/model.h"

namespace mscclc::calibrate {
namespace {

constexpr double kNear = 0.15;             ///< what predictions aim at
constexpr uint64_t kLargeProbe = 1 << 18;  ///< bytes from which on a probe shows a rate

/// Where a rate is to be seen: what its largest probe moves, over the time.
struct FirstGuess {
  std::string_view program, blocks;  ///< blocks: the parameter B; "": the probe has none
  uint64_t times;                    ///< how often the message is moved
  uint64_t Machine::*rate;
};
/// A copy from input to output by way of scratch reads and writes twice each. Of links, both that
/// of the machine's kind and the other.
constexpr FirstGuess kFirstGuesses[] = {
    {"local_copies", "", 4, &Machine::block_local_mb_per_s},
    {"local_copies", "60", 4, &Machine::memory_mb_per_s},
    {"hops_of_puts", "", 1, &Machine::block_remote_mb_per_s},
    {"hops_of_puts", "60", 1, &Machine::nvlink_mb_per_s},
    {"hops_of_puts", "60", 1, &Machine::pcie_mb_per_s},
    {"sendrecv_port", "1", 1, &Machine::copy_engine_mb_per_s},
    {"sendrecv_port", "1", 1, &Machine::nic_mb_per_s},
};

std::string_view blocks_of(const Probe& probe) {
  for (const auto& [name, value] : probe.params) {
    if (name == "B") return value;
  }
  return {};
}

/// A probe's plan, and what predicts its call: a model of its own, as the fit asks for several
/// probes at once.
struct Prepared {
  std::shared_ptr<const Program> plan;
  std::shared_ptr<cost::Model> model;
  Call call;
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
    if (!measure(out, &ProbeTimes::first) || !measure(out, &ProbeTimes::second)) {
      return std::nullopt;
    }
    find_figures(out);
    return out;
  }

 private:
  bool prepare(const Probe& probe) {
    std::shared_ptr<const Program>& plan = plans_[probe.name()];
    if (plan == nullptr) plan = compile_probe(probe, diagnostics_);
    if (plan == nullptr) return false;
    Prepared& prepared = prepared_.emplace_back();
    prepared.plan = plan;
    prepared.model = std::make_shared<cost::Model>(*plan);
    prepared.call = cost::call_of(*plan, probe.bytes, Dtype::f32);
    // What cannot be predicted now never can.
    return prepared.model->predict(prepared.call, options_.base, diagnostics_).has_value();
  }

  bool measure(Calibration& out, double ProbeTimes::*time) {
    for (ProbeTimes& times : out.probes) {
      const std::string name = times.probe.name();
      progress_(fmt::format("{}, {} bytes", name, times.probe.bytes));
      const auto taken =
          timer_.time({.plan = plans_[name], .bytes = times.probe.bytes}, diagnostics_);
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
    for (size_t p = 0; p < out.probes.size(); ++p) {
      const auto predict = [prepared = prepared_[p]](const Machine& machine) {
        Diagnostics none;  // it was predicted before
        const auto timeline = prepared.model->predict(prepared.call, machine, none);
        return std::max(timeline->back_to_back_ns, 1.0);
      };
      points.push_back({out.probes[p].least(), predict});
    }
    out.fit = cost::fit_figures(with_first_guesses(out), options_.fields, points,
                                [&](const cost::FitStep& step) {
                                  progress_(fmt::format("step {} of the fit", step.number));
                                });
    for (size_t p = 0; p < out.probes.size(); ++p) out.probes[p].predicted = out.fit.predicted[p];
  }

  /// Of several rates the least decides, and none of the others shows: the fit would put what is
  /// one rate's into another. So each begins where its own probe has it.
  Machine with_first_guesses(const Calibration& measured) const {
    Machine machine = options_.base;
    for (const FirstGuess& guess : kFirstGuesses) {
      const auto is_rate = [&](const MachineField* f) { return f->value == guess.rate; };
      if (std::ranges::none_of(options_.fields, is_rate)) continue;
      uint64_t most = kLargeProbe;
      for (const ProbeTimes& times : measured.probes) {
        const Probe& probe = times.probe;
        if (probe.program != guess.program || blocks_of(probe) != guess.blocks) continue;
        if (probe.bytes < most) continue;
        most = probe.bytes;
        const double moved = static_cast<double>(probe.bytes * guess.times);
        machine.*guess.rate = std::max<uint64_t>(1, std::llround(moved * 1e3 / times.least()));
      }
    }
    return machine;
  }

  CallTimer& timer_;
  const std::vector<Probe>& probes_;
  const CalibrationOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::shared_ptr<const Program>> plans_;  ///< by probe's name
  std::vector<Prepared> prepared_;                               ///< by probe
};

double share_off(double value, double of) { return std::abs(value / of - 1); }

}  // namespace

double ProbeTimes::apart() const { return share_off(second, first); }
double ProbeTimes::least() const { return std::min(first, second); }
double ProbeTimes::off() const { return share_off(predicted, least()); }

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
    // No probe uses a switch or a contract about bits; and of a length from which on messages are
    // long, or of what there is room for, times have no slope.
    if (field.group == "switch" || field.group == "sum" || field.name == "long_bytes") continue;
    if (field.name == "multiprocessors" || field.name == "packet_threads") continue;
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
