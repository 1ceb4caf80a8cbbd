// The column is parsed at compile time, so a step that there is not, or an op whose steps do not
// fit it, does not build.
#include "executor/runs_as.h"

#include <algorithm>
#include <string_view>

namespace mscclc {
namespace {

using device::StepKind;

constexpr StepKind step_named(std::string_view name) {
  const auto table = device::step_table();
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name) return static_cast<StepKind>(i);
  }
  throw "ops.def: runs_as names no step";
}

/// "a/b": b if the destinations are ports, else a.
constexpr StepKind step_of(std::string_view word, bool by_port) {
  const size_t slash = word.find('/');
  if (slash == word.npos) return step_named(word);
  return step_named(by_port ? word.substr(slash + 1) : word.substr(0, slash));
}

/// Steps after the first are about channels.
constexpr void check_next(StepKind first, StepKind next) {
  const bool channels = next == StepKind::signal || next == StepKind::flush;
  if (!device::moves_data(first) || !channels) throw "ops.def: runs_as: step out of place";
}

constexpr StepList parse(std::string_view text, bool by_port) {
  StepList steps;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const StepKind kind = step_of(text.substr(at, end - at), by_port);
    if (steps.begin() != steps.end()) check_next(*steps.begin(), kind);
    steps.add(kind);
    at = end + 1;
  }
  return steps;
}

struct Row {
  StepList steps, by_port;
};

constexpr Row kRows[] = {
#define OP(name, wire, relaxed, channels, dsts, srcs, effects, cost, made_of, runs_as, summary) \
  {parse(runs_as, false), parse(runs_as, true)},
#include "ir/ops/ops.def"
#undef OP
};

}  // namespace

const StepList& runs_as(OpKind op, bool by_port) {
  const Row& row = kRows[static_cast<size_t>(op)];
  return by_port ? row.by_port : row.steps;
}

}  // namespace mscclc
