#include "tools/run/run_timeline.h"

#include <fmt/format.h>

#include <utility>

#include "executor/cost/machines.h"
#include "executor/cost/model.h"
#include "tools/timeline/predicted.h"

namespace mscclc {

int machine_fits(const RunOptions& options, Input& input) {
  if (!options.timeline.asked()) return kFine;
  const auto machine = cost::machine_for(input.program, options.machine, input.diagnostics);
  const bool fits = machine && cost::fits(input.program, *machine, input.diagnostics);
  input.report();
  return fits ? kFine : machine ? kWrongProgram : kUsage;
}

std::optional<RunTimeline> RunTimeline::make(const RunOptions& options, const Program& program,
                                             const RunSpec& spec, Diagnostics& diagnostics) {
  RunTimeline made(options, program);
  auto machine = cost::machine_for(program, options.machine, diagnostics);
  if (!machine) return std::nullopt;
  made.machine_ = *std::move(machine);
  Call call = cost::call_of(program, spec.bytes, spec.dtype, spec.op);
  if (spec.accumulate) call.accumulate = *spec.accumulate;
  auto plan = timeline::predict(program, call, made.machine_, diagnostics);
  if (!plan) return std::nullopt;
  made.plan_ = *std::move(plan);
  made.title_ = timeline::title_of(program, call);
  return made;
}

Result<void> RunTimeline::write(const std::vector<timeline::RankStamps>& ranks,
                                const std::string& how) const {
  std::vector<timeline::Trace> traces;
  if (!ranks.empty()) {
    auto measured = timeline::measured_trace(plan_, ranks, "measured " + how);
    if (!measured) return Error{"no timeline: " + measured.error().text()};
    traces.push_back(*std::move(measured));
  }
  traces.push_back(timeline::predicted_trace(plan_, machine_));
  return timeline::write_timeline(options_->timeline, {*program_, title_}, traces);
}

std::optional<Error> why_no_timeline(const RunOptions& options, const std::vector<RunSpec>& specs) {
  if (!options.timeline.asked()) {
    if (options.machine.empty()) return std::nullopt;
    return Error{"--machine is for --trace and --html"};
  }
  if (const auto could = timeline::could_write_timeline(options.timeline); !could) {
    return could.error();
  }
  if (specs.size() == 1) return std::nullopt;
  return Error{
      fmt::format("--trace and --html show one call; {} sizes, types and reductions were asked for",
                  specs.size())};
}

}  // namespace mscclc
