#include "tests/mutate/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "executor/simulator/run.h"
#include "ir/diagnostics/first_message.h"
#include "ir/support/result.h"
#include "ir/verify/verify.h"
#include "passes/prove/prove.h"
#include "tests/explore/explore.h"

namespace mscclc {
namespace {

std::vector<bool> placements(const Program& program) {
  const Contract& contract = program.contract;
  std::vector<bool> found;
  if (contract.in_place != InPlace::yes) found.push_back(false);
  if (contract.in_place != InPlace::no && contract.can_alias()) found.push_back(true);
  return found;
}

/// What the explorer says of all placements: the first that is not right.
Exploration explore_all(const Program& program, uint64_t states, bool same_bits) {
  for (const bool in_place : placements(program)) {
    Exploration found = explore(program, {.calls = 2,
                                          .in_place = in_place,
                                          .most_states = states,
                                          .same_bits = same_bits,
                                          .reduced = true});
    if (found.verdict == Verdict::right) continue;
    found.reason = fmt::format("explorer, {}: {}: {}", in_place ? "in place" : "out of place",
                               name(found.verdict), found.reason);
    return found;
  }
  return {};
}

/// Elements of a part. In pipelines: one round, and as many as show units that are used again.
std::vector<uint64_t> sizes(const Program& program, uint64_t element) {
  std::vector<uint64_t> all = {3, 259};
  uint64_t units = 0, unit = 0;
  for (const Loop& loop : program.loops) unit = std::max(unit, loop.unit);
  for (const Rank& rank : program.ranks) {
    for (const Buffer& b : rank.buffers) units = std::max<uint64_t>(units, b.units);
  }
  const uint64_t round = unit * program.contract.part_chunks() / element;
  if (units != 0) all.insert(all.end(), {(units + 1) * round, (2 * units + 3) * round - 1});
  return all;
}

/// What is wrong on the simulator.
std::optional<Error> wrong_on_host(const Program& program, uint32_t seeds) {
  Simulator runner(program);
  static constexpr std::array kOps = {ReduceOp::sum, ReduceOp::avg, ReduceOp::max};
  const Dtype dtype = program.select.dtypes.empty() ? Dtype::f32 : program.select.dtypes[0];
  for (const bool in_place : placements(program)) {
    for (const uint64_t elements : sizes(program, info(dtype).bytes)) {
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        RunSpec spec{.dtype = dtype, .in_place = in_place, .iterations = 4, .schedule_seed = seed};
        const Chunking part(program.contract, elements * info(dtype).bytes, program.launch.align);
        spec.bytes = part.message_bytes();
        if (program.select.ops.empty()) spec.op = kOps[seed % kOps.size()];
        if (seed % 4 != 0) spec.adversary = Adversary{};
        Diagnostics diagnostics;
        const RunResult result = runner.run(spec, diagnostics);
        if (result.status == RunStatus::right) continue;
        return Error{fmt::format("simulator, {} bytes, {}, seed {}: {}", spec.bytes,
                                 in_place ? "in place" : "out of place", seed,
                                 first_message(diagnostics, "wrong"))};
      }
    }
  }
  return {};
}

}  // namespace

std::string_view name(Judgement judgement) {
  constexpr std::array<std::string_view, kJudgements> kNames = {
      "malformed", "refused", "explored", "same_bits", "scheduled", "wrong"};
  return kNames[static_cast<size_t>(judgement)];
}

Judged judge(const Program& program, const Trial& trial) {
  Diagnostics diagnostics;
  if (!verify_structure(program, diagnostics)) return {Judgement::malformed, {}};
  if (!prove(program, diagnostics).proved) return {Judgement::refused, {}};
  if (const auto wrong = wrong_on_host(program, trial.seeds)) {
    return {Judgement::wrong, wrong->text()};
  }
  Exploration explored = explore_all(program, trial.most_states, false);
  const std::string race = explored.reason;
  const bool disputed = explored.verdict == Verdict::race;
  if (disputed) explored = explore_all(program, trial.most_states, true);
  switch (explored.verdict) {
    case Verdict::right:
      return {disputed ? Judgement::same_bits : Judgement::explored, race};
    case Verdict::unsupported:
    case Verdict::too_large:
      return {Judgement::scheduled, explored.reason};
    case Verdict::race:
    case Verdict::wrong_data:
    case Verdict::deadlock:
      break;
  }
  return {Judgement::wrong, explored.reason};
}

}  // namespace mscclc
