#include "passes/prove/report/report_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/print/print.h"
#include "ir/print/row_names.h"
#include "passes/prove/report/finding_text.h"

namespace mscclc::proof {
namespace {

class ValueReport : FindingText {
 public:
  using FindingText::FindingText;

  void wrong_value() {
    const bool harmless = finding_.only_often && repeats_are_harmless();
    Diagnostic& d =
        harmless ? error("undecided", fmt::format("not decided: {} is made of an input more than "
                                                  "once; for min and max that changes nothing, but "
                                                  "only results with each input once are proved",
                                                  chunk()))
                 : error("wrong-result",
                         fmt::format("{} does not hold what {} promises at the end of a call{}",
                                     chunk(), collective(), placement()));
    constexpr size_t kShown = 8;
    if (finding_.first.op != kNone) note(d, finding_.first, "this op wrote it last");
    d.notes.push_back({promise()});
    if (finding_.reader.op != kNone) note_unwritten(d);
    const std::vector<std::string>& texts = finding_.notes;
    for (size_t i = 0; i < std::min(texts.size(), kShown); ++i) d.notes.push_back({texts[i]});
    if (texts.size() > kShown) {
      d.notes.push_back({fmt::format("and {} more", texts.size() - kShown)});
    }
    if (!finding_.alike.empty()) d.notes.push_back({alike()});
    note_elsewhere(d);
  }

  void wrong_external() {
    Diagnostic& d = error("wrong-result", fmt::format("{} does not hold what the collective "
                                                      "promises at the end of a call{}",
                                                      of_external(finding_.chunk), placement()));
    if (finding_.first.op != kNone) note(d, finding_.first, "this op wrote it last");
    for (const std::string& text : finding_.notes) d.notes.push_back({text});
  }

  /// How the sum is made (finding_.notes[0]), and where it was first seen (alike, notes[1]).
  void other_order() {
    const Contract& contract = program_.contract;
    const auto result = [&](const ChunkName& c) {
      return finding_.external ? of_external(c) : chunk(c);
    };
    Diagnostic& d =
        error("sum-order", fmt::format("{} does not keep 'order: {}'{}", result(finding_.chunk),
                                       name(contract.order), placement()));
    if (finding_.first.op != kNone) note(d, finding_.first, "this op wrote it last");
    const bool traced = finding_.notes.size() == 2;
    const std::string made = traced ? finding_.notes[0] : "";
    if (made == kNoExpression) {
      d.notes.push_back(
          {"how it was added up cannot be shown: by a switch, which has an order of its own, in "
           "another order in some of its pieces, or inside a row function"});
    } else if (traced) {
      const bool rounds = made.find('[') != std::string::npos;
      d.notes.push_back({fmt::format("it is {}, where xr is what rank r contributes{}", made,
                                     rounds ? ", and sums in brackets are rounded" : "")});
    }
    if (traced && made != finding_.notes[1]) {
      d.notes.push_back(
          {fmt::format("{} is {}", result(finding_.alike[0]),
                       finding_.notes[1] == kNoExpression ? "added up in a way that cannot be shown"
                                                          : finding_.notes[1])});
    }
    d.notes.push_back(
        {fmt::format("'{}' means: {}", name(contract.order), summary(contract.order))});
    d.notes.push_back({remedy(contract.order, made)});
  }

 private:
  static constexpr std::string_view kNoExpression = "...";

  /// "x0 + x1 + x2": from the left, in the order of the ranks, and not rounded in between.
  static bool in_rank_order(std::string_view sum) {
    uint32_t rank = 0;
    for (std::string term; !sum.empty(); ++rank) {
      term = fmt::format("{}x{}", rank == 0 ? "" : " + ", rank);
      if (sum == " + ...") return true;
      if (!sum.starts_with(term)) return false;
      sum.remove_prefix(term.size());
    }
    return rank > 0;
  }

  /// `made`: the sum, if that is known.
  static const char* remedy(SumOrder order, std::string_view made) {
    switch (order) {
      case SumOrder::exact:
        return "give one op the contributions of all ranks, as they are, and the option 'exact'; a "
               "sum of parts is rounded on the way";
      case SumOrder::tree:
        if (in_rank_order(made)) {
          return "the operands are in the order of the ranks: give the op the option 'tree'";
        }
        return "give one op the contributions of all ranks, in the order of the ranks, and the "
               "option 'tree'";
      case SumOrder::replicated:
        return "list the operands of each sum in the same order on all ranks, the rank's own in "
               "its place; or let one rank add up, and send the others the sum";
      case SumOrder::ranks:
      case SumOrder::any:
        break;
    }
    if (made.find('(') != std::string_view::npos) {  // of ops with an option alone
      return "leave out the options 'tree' and 'exact', and list the operands in that order";
    }
    return "list the operands of each sum in that order, the rank's own in its place";
  }

  std::string of_external(const ChunkName& c) const {
    return fmt::format("chunk {} of the external '{}' of rank {}", c.chunk,
                       program_.externals[c.buffer].name, c.rank);
  }

  /// Results that other ops wrote, wrong in the same way: the first few, and how many there are.
  void note_elsewhere(Diagnostic& d) const {
    constexpr size_t kShown = 3;
    const std::vector<Finding::Elsewhere>& others = finding_.elsewhere;
    for (size_t i = 0; i < std::min(others.size(), kShown); ++i) {
      const Finding::Elsewhere& other = others[i];
      const std::string more =
          other.alike == 0 ? "" : fmt::format(" (and {} more alike)", other.alike);
      note(d, other.writer,
           fmt::format("{} is wrong, too{}{}", chunk(other.chunk), more,
                       other.writer.op == kNone ? "" : ": this op wrote it last"));
    }
    if (others.size() <= kShown) return;
    uint64_t rest = 0;
    for (size_t i = kShown; i < others.size(); ++i) rest += 1 + others[i].alike;
    d.notes.push_back({fmt::format("and {} more results are wrong", rest)});
  }

  /// Is every reduction a minimum or a maximum?
  bool repeats_are_harmless() const {
    return std::ranges::all_of(program_.ranks, [](const Rank& rank) {
      return std::ranges::all_of(rank.ops, [](const Op& op) {
        return !info(op.kind).has(kReduces) || is_extremum(op.reduce);
      });
    });
  }

  void note_unwritten(Diagnostic& d) const {
    const Event& e = finding_.reader;
    note(d, e,
         fmt::format("{} what was in {} before anything was written there: {} reads it{}",
                     finding_.added ? "the sum includes" : "it holds", chunk(finding_.unwritten),
                     who(e), place(e)));
  }

  /// "the same holds for 2 more: output[0] of rank 1, output[0] of rank 2"
  std::string alike() const {
    constexpr size_t kShown = 8;
    std::vector<ChunkName> names = finding_.alike;
    std::ranges::sort(names, {}, [](const ChunkName& c) { return std::pair(c.rank, c.chunk); });
    std::string text = fmt::format("the same holds for {} more: ", names.size());
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
      text += (i == 0 ? "" : ", ") + chunk(names[i]);
    }
    return names.size() > kShown ? text + ", ..." : text;
  }

  std::string collective() const {
    if (!system_.joint()) return "the collective";
    const ChunkName& c = finding_.chunk;
    return fmt::format("'{}'", system_.part_of_buffer(c.rank, c.buffer).name);
  }

  /// "promised is the sum of input[0] of rank 0, input[0] of rank 1"
  std::string promise() const {
    constexpr size_t kShown = 8;
    const Part& part = system_.part_of_buffer(finding_.chunk.rank, finding_.chunk.buffer);
    const auto promise =
        part.contract().promise(part.local[finding_.chunk.rank], finding_.chunk.chunk);
    if (!promise) return "nothing is promised of it";
    const std::vector<CallerChunk>& terms = promise->inputs;
    std::string text = "promised is ";
    if (const uint32_t then = part.contract().then; then != Contract::kNoFunction) {
      text += fmt::format("'{}' of ", part.program->functions[then].name);
    }
    if (terms.size() > 1) text += "the reduction of ";
    for (size_t i = 0; i < std::min(terms.size(), kShown); ++i) {
      const Buffer& input = part.program->ranks[terms[i].rank].buffers[kInput];
      text += fmt::format("{}{} of rank {}", i == 0 ? "" : ", ",
                          run_text(*part.program, input, terms[i].chunk, 1), terms[i].rank);
    }
    if (terms.size() > kShown) text += fmt::format(" and {} more", terms.size() - kShown);
    return text;
  }
};

}  // namespace

void report_values(const System& system, const Finding& finding, Diagnostics& diagnostics) {
  ValueReport report(system, finding, diagnostics);
  if (finding.kind == Finding::Kind::wrong_value) return report.wrong_value();
  if (finding.kind == Finding::Kind::wrong_external) return report.wrong_external();
  report.other_order();
}

}  // namespace mscclc::proof
