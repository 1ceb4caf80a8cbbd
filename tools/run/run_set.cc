#include "tools/run/run_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "executor/simulator/schedules/schedule.h"
#include "tools/io/files.h"
#include "tools/run/placed_input.h"

namespace mscclc {
namespace {

constexpr size_t kMaxRanks = 16;  // whose calls are reported

/// Loads all FILEs. Returns kFine, or the exit code.
int load_all(const RunOptions& options, std::deque<PlacedInput>& inputs) {
  for (const std::string& name : options.files) {
    PlacedInput& one = inputs.emplace_back(options.input, name);
    if (const auto split = one.split_name(); !split) return Input::usage(split.error());
    if (const int code = load_to_run(options, one.input); code != kFine) return code;
    if (const auto chosen = one.choose_ranks(); !chosen) return Input::usage(chosen.error());
  }
  return kFine;
}

std::string calls_text(const std::deque<PlacedInput>& inputs, const std::vector<uint32_t>& calls) {
  std::vector<std::string_view> names;
  for (const uint32_t plan : calls) names.push_back(inputs[plan].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void print_calls(const std::deque<PlacedInput>& inputs, const CallsByRank& order) {
  const bool one = std::ranges::all_of(order, [&](const auto& calls) { return calls == order[0]; });
  if (one) return put(fmt::format("# every rank: {}\n", calls_text(inputs, order[0])));
  for (size_t r = 0; r < std::min(order.size(), kMaxRanks); ++r) {
    put(fmt::format("# rank {}: {}\n", r, calls_text(inputs, order[r])));
  }
  if (order.size() > kMaxRanks) {
    put(fmt::format("# and {} more ranks\n", order.size() - kMaxRanks));
  }
}

void print_table(const std::deque<PlacedInput>& inputs, const RunSpec& spec,
                 const RunResult& result) {
  put(fmt::format("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>9}  {:>5}  {:>6}  {}\n# {:>10}  {:>12}\n",
                  "size", "count", "type", "redop", "in-place", "calls", "#wrong", "plan", "(B)",
                  "(elements)"));
  const CallSequence sequence(spec.order);
  const bool ended = result.status == RunStatus::right || result.status == RunStatus::wrong;
  for (uint32_t p = 0; ended && p < inputs.size(); ++p) {
    const RunResult& own = result.plans[p];
    const Contract& contract = inputs[p].input.program.contract;
    put(fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>9}  {:>5}  {:>6}  {}\n", own.bytes, own.count,
                    info(spec.dtype).name, contract.reduces() ? name(spec.op) : "none",
                    own.in_place ? "yes" : "no", sequence.calls_of(p, inputs[p].ranks[0]),
                    own.wrong, inputs[p].name));
  }
  put("#\n");
}

}  // namespace

int run_set_schedule(const RunOptions& options) {
  std::deque<PlacedInput> inputs;
  if (const int code = load_all(options, inputs); code != kFine) return code;
  const auto text = read_input(options.schedule);
  if (!text) return Input::usage(text.error());
  const std::vector<PlacedPlan> plans = placed(inputs);
  Diagnostics diagnostics;
  const auto schedule = read_schedule(*text, options.schedule, plans, diagnostics);
  const Sources sources = sources_of(inputs);
  if (!schedule) {
    print_diagnostics(diagnostics, sources, options.input.diagnostics);
    return kWrongProgram;
  }
  const RunSpec& spec = schedule->spec;
  if (const auto lack = lack_of_memory(plans, spec.plan_bytes)) return Input::usage(*lack);
  put(fmt::format("# mscclc run: {} plans over {} ranks, schedule '{}'\n", plans.size(),
                  spec.order.size(), options.schedule));
  print_calls(inputs, spec.order);
  const RunResult result = Simulator(plans).run(spec, diagnostics);
  print_table(inputs, spec, result);
  print_diagnostics(diagnostics, sources, options.input.diagnostics);
  Totals totals;
  count_result(result, totals);
  return totals.code;
}

}  // namespace mscclc
