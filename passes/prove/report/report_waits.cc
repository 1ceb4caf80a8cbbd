#include "passes/prove/report/report_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/print/print.h"
#include "ir/report/op_error.h"
#include "passes/prove/report/finding_text.h"
#include "passes/prove/report/missing_edge.h"
#include "passes/symbolic/symbolic_run.h"

namespace mscclc::proof {
namespace {

class WaitReport : FindingText {
 public:
  using FindingText::FindingText;

  void stuck() {
    if (system_.joint()) return stuck_together();
    const bool before = diagnostics_.has_errors();
    symbolic::SymbolicRun run(program_, false);
    if (run.fits() && !run.run([](uint32_t, uint32_t, std::span<const symbolic::Symbol>) {})) {
      run.report_stuck(diagnostics_);
    } else if (!before) {
      error("stuck", "the program gets stuck in its second call or in a pipeline");
    }
  }

  void unbalanced() {
    const Rank& rank = program_.ranks[finding_.rank];
    const bool channel = finding_.channel != kNone;
    const std::string name = program_.text(channel ? rank.channels[finding_.channel].label
                                                   : rank.semaphores[finding_.semaphore].label);
    const uint64_t many = static_cast<uint64_t>(std::abs(finding_.surplus));
    Diagnostic& d = diagnostics_.error(
        "unbalanced", {},
        fmt::format("in each call '{}' of rank {} is {} {} time{} {} than it is {}", name,
                    finding_.rank, channel ? "signalled" : "released", many, many == 1 ? "" : "s",
                    finding_.surplus > 0 ? "more" : "less", channel ? "waited for" : "acquired"));
    d.missing = unbalanced_edge(program_, finding_);
  }

  void not_met() {
    diagnostics_.error("not-met", {},
                       fmt::format("rank {} may leave the barrier before rank {} has arrived",
                                   finding_.rank, finding_.chunk.rank));
  }

  void unpaired() {
    Diagnostic& d = error("unpaired-rounds", "not decided: " + finding_.text);
    note_rounds(d, finding_.first);
    note_rounds(d, finding_.second);
    d.notes.push_back(
        {"what a round gives must be taken in the same round of a pipeline with as many rounds"});
  }

  void out_of_step() {
    Diagnostic& d = error(
        "out-of-step",
        "not decided: pipelines that signal each other cannot do their rounds one by one together");
    constexpr size_t kMaxWaiting = 8;
    for (size_t i = 0; i < std::min(finding_.waiting.size(), kMaxWaiting); ++i) {
      const Event& e = finding_.waiting[i];
      note(d, e, fmt::format("waits for others' rounds: {}{}", who(e), place(e)));
    }
    d.notes.push_back(
        {"one of them must end, or another begin, before they can; join them to one pipeline"});
  }

 private:
  /// Who is in which call, and waits for what.
  void stuck_together() {
    Diagnostic& d = error("stuck", "ranks wait for each other forever");
    constexpr size_t kMaxWaiting = 8;
    for (size_t i = 0; i < std::min(finding_.waiting.size(), kMaxWaiting); ++i) {
      const Event& e = finding_.waiting[i];
      const Origin o = origin(e);
      note(d, e,
           fmt::format("rank {} is in its {}, '{}', and waits: '{}' ({})", process(e).rank,
                       ordinal_call(e.call), o.part.name, print_op(o.program(), o.rank, o.op),
                       print_place(o.program(), o.rank, o.op)));
    }
  }
  static std::string ordinal_call(uint32_t call) {
    constexpr std::array<std::string_view, 3> kNames = {"first", "second", "third"};
    return call < kNames.size() ? fmt::format("{} call", kNames[call])
                                : fmt::format("call {}", call + 1);
  }

  /// "in each round of a pipeline (unit 1024, chunks 2)", or "outside pipelines".
  std::string rounds(const Event& e) const {
    const Origin o = origin(e);
    if (o.op.loop == kNone) return "outside pipelines";
    const Loop& loop = o.program().loops[o.op.loop];
    return fmt::format("in each round of a pipeline with unit: {}, chunks: {}", loop.unit,
                       loop.chunks);
  }
  void note_rounds(Diagnostic& d, const Event& e) const {
    note(d, e, fmt::format("{} runs {}{}", who(e), rounds(e), place(e)));
  }
};

}  // namespace

void report_waits(const System& system, const Finding& finding, Diagnostics& diagnostics) {
  WaitReport report(system, finding, diagnostics);
  if (finding.kind == Finding::Kind::stuck) return report.stuck();
  if (finding.kind == Finding::Kind::unbalanced) return report.unbalanced();
  if (finding.kind == Finding::Kind::not_met) return report.not_met();
  if (finding.kind == Finding::Kind::unpaired) return report.unpaired();
  report.out_of_step();
}

void report_flag_count(const System& system, const Finding& finding, Diagnostics& diagnostics) {
  const Span declared = system.program().flags[finding.chunk.buffer].declared;
  Diagnostic& d = diagnostics.error("flag-count", declared, finding.text);
  d.notes.push_back(
      {"notify each flag of the output as often in a call as its 'raises' says, "
       "which is 1 unless it is declared"});
}

}  // namespace mscclc::proof
