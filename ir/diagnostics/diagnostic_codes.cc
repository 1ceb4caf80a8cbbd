#include "ir/diagnostics/diagnostic_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mscclc {
namespace {

constexpr CodeInfo kTable[] = {
#define CODE(area, severity, name, meaning, ...) \
  {CodeArea::area, Severity::severity, name, meaning __VA_OPT__(, CodeCause::__VA_ARGS__)},
#include "ir/diagnostics/diagnostic_codes.def"
#undef CODE
};

constexpr std::array<std::string_view, 6> kTitles = {
    "The language", "IR and passes",          "The prover", "Plans: files, and running them",
    "The runtime",  "Commands and benchmarks"};

}  // namespace

std::span<const CodeInfo> code_table() { return kTable; }

bool is_of_job(std::string_view code) {
  return std::ranges::any_of(
      kTable, [&](const CodeInfo& row) { return row.name == code && row.cause == CodeCause::job; });
}

std::string code_reference() {
  std::string out =
      "# Diagnostics\n\n"
      "Every diagnostic has a code: `Diagnostic::code`, `\"code\"` in `--diagnostics=json`. Codes "
      "keep\ntheir meaning from version to version; texts may change. This page is made of\n"
      "`ir/diagnostics/diagnostic_codes.def` (`bazel run //ir/diagnostics:codes_page > "
      "docs/diagnostics.md`).\n";
  for (size_t area = 0; area < kTitles.size(); ++area) {
    out += fmt::format("\n## {}\n\n| code | meaning |\n|---|---|\n", kTitles[area]);
    for (const CodeInfo& row : kTable) {
      if (static_cast<size_t>(row.area) != area) continue;
      out += fmt::format("| `{}` | {}{} |\n", row.name,
                         row.severity == Severity::warning ? "warning: " : "", row.meaning);
    }
  }
  return out;
}

}  // namespace mscclc
