#include "runtime/support/result_kind.h"

#include <algorithm>
#include <utility>

#include "ir/diagnostics/diagnostic_codes.h"

namespace mscclc {
namespace {

/// Codes whose area does not say it.
constexpr std::pair<std::string_view, ResultKind> kResultKinds[] = {
    {"aborted", ResultKind::aborted},
    {"after-fork", ResultKind::usage},
    {"bad-call", ResultKind::argument},
    {"bad-external", ResultKind::argument},
    {"bad-selection", ResultKind::usage},
    {"bad-unique-id", ResultKind::argument},
    {"bad-variable", ResultKind::usage},
    {"bootstrap-gone", ResultKind::peer},
    {"bootstrap-refused", ResultKind::peer},
    {"bootstrap-timeout", ResultKind::timeout},
    {"call-differs", ResultKind::usage},
    {"false-claim", ResultKind::not_proved},
    {"flags-not-resident", ResultKind::argument},
    {"flags-staged", ResultKind::usage},
    {"hang", ResultKind::timeout},
    {"memory", ResultKind::memory},
    {"message-size", ResultKind::argument},
    {"name-taken", ResultKind::argument},
    {"no-buffer", ResultKind::argument},
    {"no-descriptors", ResultKind::memory},
    {"no-memory", ResultKind::memory},
    {"no-plan", ResultKind::no_plan},
    {"no-plan-in-order", ResultKind::usage},
    {"no-such-device", ResultKind::argument},
    {"no-thread", ResultKind::memory},
    {"not-mapped", ResultKind::usage},
    {"not-proved", ResultKind::not_proved},
    {"options-differ", ResultKind::usage},
    {"out-of-memory", ResultKind::memory},
    {"outside-buffer", ResultKind::usage},
    {"over-capacity", ResultKind::argument},
    {"overlap", ResultKind::argument},
    {"peer-failed", ResultKind::peer},
    {"plan-differs", ResultKind::usage},
    {"rank-died", ResultKind::peer},
    {"rank-gave-up", ResultKind::peer},
    {"rank-left", ResultKind::peer},
    {"sentinel-width", ResultKind::argument},
    {"stale-registration", ResultKind::usage},
    {"too-few-descriptors", ResultKind::memory},
    {"two-threads", ResultKind::usage},
    {"wrong-binding", ResultKind::argument},
    {"wrong-size", ResultKind::argument},
};

ResultKind result_kind(CodeArea area) {
  switch (area) {
    case CodeArea::language:
    case CodeArea::ir:
    case CodeArea::prover:
      return ResultKind::not_proved;
    case CodeArea::plan:
      return ResultKind::argument;
    case CodeArea::runtime:
    case CodeArea::tools:
      break;
  }
  return ResultKind::system;
}

}  // namespace

ResultKind result_kind(std::string_view code) {
  for (const auto& [name, kind] : kResultKinds) {
    if (name == code) return kind;
  }
  for (const CodeInfo& row : code_table()) {
    if (row.name == code) return result_kind(row.area);
  }
  return ResultKind::internal;
}

ResultKind result_kind(const Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  const auto first =
      std::ranges::find(all, Severity::error, [](const Diagnostic& d) { return d.severity; });
  return first == all.end() ? ResultKind::internal : result_kind(first->code);
}

bool may_be_of_one_rank(const Diagnostics& failed) {
  const ResultKind kind = result_kind(failed);
  return failed.has_errors() && kind != ResultKind::no_plan && kind != ResultKind::usage;
}

}  // namespace mscclc
