#include "runtime/support/blame.h"

#include <algorithm>
#include <utility>

#include "ir/diagnostics/diagnostic_codes.h"

namespace mscclc {
namespace {

/// Codes whose area does not say it.
constexpr std::pair<std::string_view, Blame> kBlames[] = {
    {"aborted", Blame::aborted},
    {"after-fork", Blame::usage},
    {"bad-call", Blame::argument},
    {"bad-selection", Blame::usage},
    {"bad-unique-id", Blame::argument},
    {"bad-variable", Blame::usage},
    {"bootstrap-gone", Blame::peer},
    {"bootstrap-refused", Blame::peer},
    {"bootstrap-timeout", Blame::timeout},
    {"call-differs", Blame::usage},
    {"false-claim", Blame::not_proved},
    {"hang", Blame::timeout},
    {"memory", Blame::memory},
    {"message-size", Blame::argument},
    {"name-taken", Blame::argument},
    {"no-buffer", Blame::argument},
    {"no-descriptors", Blame::memory},
    {"no-memory", Blame::memory},
    {"no-plan", Blame::no_plan},
    {"no-plan-in-order", Blame::usage},
    {"no-such-device", Blame::argument},
    {"no-thread", Blame::memory},
    {"not-mapped", Blame::usage},
    {"not-proved", Blame::not_proved},
    {"options-differ", Blame::usage},
    {"out-of-memory", Blame::memory},
    {"outside-buffer", Blame::usage},
    {"over-capacity", Blame::argument},
    {"overlap", Blame::argument},
    {"peer-failed", Blame::peer},
    {"plan-differs", Blame::usage},
    {"rank-died", Blame::peer},
    {"rank-gave-up", Blame::peer},
    {"rank-left", Blame::peer},
    {"sentinel-width", Blame::argument},
    {"stale-registration", Blame::usage},
    {"too-few-descriptors", Blame::memory},
    {"two-threads", Blame::usage},
    {"wrong-binding", Blame::argument},
    {"wrong-size", Blame::argument},
};

Blame blame_of(CodeArea area) {
  switch (area) {
    case CodeArea::language:
    case CodeArea::ir:
    case CodeArea::prover:
      return Blame::not_proved;
    case CodeArea::plan:
      return Blame::argument;
    case CodeArea::runtime:
    case CodeArea::tools:
      break;
  }
  return Blame::system;
}

}  // namespace

Blame blame_of(std::string_view code) {
  for (const auto& [name, blame] : kBlames) {
    if (name == code) return blame;
  }
  for (const CodeInfo& row : code_table()) {
    if (row.name == code) return blame_of(row.area);
  }
  return Blame::internal;
}

Blame blame_of(const Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  const auto first =
      std::ranges::find(all, Severity::error, [](const Diagnostic& d) { return d.severity; });
  return first == all.end() ? Blame::internal : blame_of(first->code);
}

}  // namespace mscclc
