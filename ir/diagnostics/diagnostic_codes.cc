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

/// What programs read.
constexpr std::string_view kObjects = R"(
## For programs

`--diagnostics=json`, of commands that compile or check a program, prints one object per line on standard
error. `mscclc verify --json` prints them on standard output, and for each FILE one more:
`{"file": …, "proved": true, "proof": "…"}`, and `sums` under `--order`. Keys of what is not known are left out.

| key | value |
|---|---|
| `severity` | `error` or `warning`; `note` of `--witness` |
| `code` | see below |
| `message` | for people |
| `file`, `line`, `column`, `end_line`, `end_column` | the place; from 1, columns count bytes, the end is one past the last byte. An op is at its first word |
| `path` | in place of that: where in a JSON file |
| `loop` | the values of loop variables there: `{"r": 0, "p": 3}` |
| `missing` | between which two ops an order is missing |
| `notes` | a list: `message`, and a place if it has one |
| `patches` | a list: changes of the program, each proved |

`missing` has

| key | value |
|---|---|
| `kind` | what would do: `signal` (and a wait), `sync`, `semaphore` (a release and an acquire), `flush`, `packets`; or `unknown` |
| `chunk` | what both ops touch: `inbox[0] of rank 3` |
| `copies` | so many copies of the buffer would do, too |
| `first`, `second` | the ops in the order that is meant: `does` (`reads`, `writes`, `waits`, …), `op`, `rank`, `block`, `call` (0, or how many calls later), `loop`, and the place. What has no `op` is the caller of the rank, or an op that does not exist |

A patch has a `title` and `edits`, each with `file`, `begin` and `end` (bytes of the file), the same as
`line`, `column`, `end_line` and `end_column`, and the `text` that replaces them. Edits do not overlap. A patch is
offered only if the whole program, changed so, is proved: with the parameters that are given, and with
2, 3 and 4 ranks where the number of ranks is a parameter and the program takes them, and with each other
truth value and small number among the parameters changed. No patch changes anything outside the
bodies of ranks and definitions: the collective, what it promises, parameters and requirements stay. The
search ends after 2000 changes, 2 million ops, or 20 seconds of a processor (`compiler/fix/fix.h`).

`mscclc fix FILE` applies the patch, and shows it as a diff; `--dry-run` only shows it. It exits with 0
if the program is proved, as it was or fixed, and with 1 if no patch is found.
)";

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
  out += kObjects;
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
