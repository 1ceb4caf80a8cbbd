#include "passes/prove/report/report.h"

#include <string>
#include <utility>

#include "passes/prove/report/finding_text.h"
#include "passes/prove/report/report_races.h"
#include "passes/prove/report/report_values.h"
#include "passes/prove/report/report_waits.h"

namespace mscclc::proof {
namespace {

/// Findings that come with their words.
class WordedReport : FindingText {
 public:
  using FindingText::FindingText;

  void run(const char* code, const std::string& before) {
    Diagnostic& d = error(code, before + finding_.text);
    for (const std::string& text : finding_.notes) d.notes.push_back({text});
  }
};

void report_ordered(const System& system, const Finding& finding, Diagnostics& diagnostics) {
  switch (finding.kind) {
    case Finding::Kind::race:
    case Finding::Kind::slot_twice:
    case Finding::Kind::no_packets:
      return report_races(system, finding, diagnostics);
    case Finding::Kind::wrong_value:
    case Finding::Kind::wrong_external:
    case Finding::Kind::other_order:
      return report_values(system, finding, diagnostics);
    case Finding::Kind::stuck:
    case Finding::Kind::unbalanced:
    case Finding::Kind::not_met:
    case Finding::Kind::unpaired:
    case Finding::Kind::out_of_step:
      return report_waits(system, finding, diagnostics);
    case Finding::Kind::flag_count:
      return report_flag_count(system, finding, diagnostics);
    case Finding::Kind::flag_stuck:
      return WordedReport(system, finding, diagnostics).run("flag-stuck", "");
    case Finding::Kind::undecided:
      return WordedReport(system, finding, diagnostics).run("undecided", "not decided: ");
  }
}

}  // namespace

void report(const System& system, const Finding& finding, Diagnostics& diagnostics) {
  Finding ordered = finding;
  const bool call_before = finding.second.call < finding.first.call;
  if (finding.kind == Finding::Kind::race && (call_before || finding.too_early)) {
    std::swap(ordered.first, ordered.second);  // reported in the order that is meant
    std::swap(ordered.first_writes, ordered.second_writes);
    std::swap(ordered.first_pair, ordered.second_pair);
    std::swap(ordered.first_round, ordered.second_round);
  }
  report_ordered(system, ordered, diagnostics);
}

std::optional<Unordered> unordered(const System& system, const Finding& finding) {
  std::vector<Unordered::OpInCall> places;
  for (const Event& e : {finding.first, finding.second}) {
    if (e.process == kNone || e.op == kNone) continue;
    places.push_back({system.processes()[e.process].rank, e.op, e.call});
  }
  if (places.empty()) return std::nullopt;
  Unordered pair{places[0], std::nullopt};
  if (places.size() > 1) pair.second = places[1];
  return pair;
}

}  // namespace mscclc::proof
