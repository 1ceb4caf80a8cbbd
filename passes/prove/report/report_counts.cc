#include "passes/prove/report/report_counts.h"

#include <fmt/format.h>

#include <cstdlib>

#include "passes/prove/report/missing_edge.h"

namespace mscclc::proof {

void report_unbalanced(const Program& program, const Finding& finding, Diagnostics& diagnostics) {
  const Rank& rank = program.ranks[finding.rank];
  const bool channel = finding.channel != kNone;
  const std::string name = program.text(channel ? rank.channels[finding.channel].label
                                                : rank.semaphores[finding.semaphore].label);
  const uint64_t many = static_cast<uint64_t>(std::abs(finding.surplus));
  Diagnostic& d = diagnostics.error(
      "unbalanced", {},
      fmt::format("in each call '{}' of rank {} is {} {} time{} {} than it is {}", name,
                  finding.rank, channel ? "signalled" : "released", many, many == 1 ? "" : "s",
                  finding.surplus > 0 ? "more" : "less", channel ? "waited for" : "acquired"));
  d.missing = unbalanced_edge(program, finding);
}

void report_not_met(const Finding& finding, Diagnostics& diagnostics) {
  diagnostics.error("not-met", {},
                    fmt::format("rank {} may leave the barrier before rank {} has arrived",
                                finding.rank, finding.chunk.rank));
}

void report_flag_count(const Finding& finding, Diagnostics& diagnostics) {
  Diagnostic& d = diagnostics.error("flag-count", {}, finding.text);
  d.notes.push_back(
      {"notify each flag of the output as often in a call as its 'raises' says, "
       "which is 1 unless it is declared"});
}

}  // namespace mscclc::proof
