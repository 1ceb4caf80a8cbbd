#include "passes/prove/report/report_races.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/print/print.h"
#include "ir/report/op_error.h"
#include "passes/prove/loops/rates.h"
#include "passes/prove/report/finding_text.h"
#include "passes/prove/report/missing_edge.h"
#include "passes/prove/report/near_miss.h"
#include "passes/prove/report/removed_ops.h"

namespace mscclc::proof {
namespace {

class RaceReport : FindingText {
 public:
  using FindingText::FindingText;

  void race() {
    if (finding_.overlaid) return overlaid();
    if (cut_at_one_side()) return not_cut_alike();
    const Event &a = finding_.first, &b = finding_.second;
    Diagnostic& d = error(
        "race", fmt::format("race at {}{}: nothing orders two accesses", chunk(), placement()));
    note(d, a, fmt::format("{} {} it{}", who(a), does(a, finding_.first_writes), place(a)));
    note(d, b,
         fmt::format("{}{} {} it{}", calls_apart(), who(b), does(b, finding_.second_writes),
                     place(b)));
    note_units(d);
    note_semaphores(d);
    const std::string credits = too_many_credits();
    const bool one_rank = process(a).rank == process(b).rank;
    if (credits.empty() || !one_rank) d.notes.push_back({remedy(system_, finding_).text});
    if (!credits.empty()) d.notes.push_back({credits});
    note_relaxed(d);
    note_near_miss(d);
    for (Note& removed : removed_notes(system_, finding_)) d.notes.push_back(std::move(removed));
  }

  void slot_twice() {
    const bool apart = finding_.first.call != finding_.second.call;
    Diagnostic& d =
        error("slot-twice",
              apart ? fmt::format("packets are put into {} while those of the previous call may "
                                  "still be there: the reader has not emptied it yet",
                                  chunk())
                    : fmt::format("packets are put into {} twice in one call: a reader cannot know "
                                  "which it sees",
                                  chunk()));
    note(d, finding_.first,
         fmt::format("first by {}{}", who(finding_.first), place(finding_.first)));
    note(d, finding_.second,
         fmt::format("then by {}{}", who(finding_.second), place(finding_.second)));
    if (!apart) return;
    d.notes.push_back({finding_.copies != 0
                           ? copies_text(finding_.copies)
                           : "the writer must know that the reader's call has ended"});
  }

  void no_packets() {
    Diagnostic& d =
        error("no-packets", fmt::format("a port sends {} without packets of this call in all of "
                                        "it: a reader of what it sends waits forever",
                                        chunk()));
    note(d, finding_.first,
         fmt::format("sent by {}{}", who(finding_.first), place(finding_.first)));
    d.notes.push_back(
        {"the slot must be filled before it is sent, and a sentinel slot not be read "
         "before that, which empties it"});
  }

 private:
  /// The later rank waits at a port whose first waits take no signal: so they order less than it
  /// seems. Empty if it does not.
  std::string too_many_credits() const {
    if (system_.joint() || finding_.second.op == kNone) return "";
    const uint32_t rank = process(finding_.second).rank;
    for (const Op& op : program_.ranks[rank].ops) {
      if (!info(op.kind).has(kWaits)) continue;
      for (const Operand& o : program_.dsts(op)) {
        const Channel& channel = program_.ranks[rank].channels[o.channel];
        if (channel.credits == 0) continue;
        return fmt::format(
            "too many credits: '{}' has {}, so rank {} may be that many calls, or "
            "rounds of a pipeline, ahead of what it waits for; give fewer{}",
            program_.text(channel.label), channel.credits, rank,
            finding_.copies == 0 ? "" : ", or " + copies_text(finding_.copies));
      }
    }
    return "";
  }

  /// Between two calls, a signal at the end of the first costs a round trip. The usual way is to
  /// say at the beginning of the next call that the last one is over, and to have two copies.
  void note_relaxed(Diagnostic& d) const {
    const Process &a = process(finding_.first), &b = process(finding_.second);
    const bool later = finding_.second.call > finding_.first.call;
    if (system_.joint() || !later || finding_.copies != 0 || a.rank == b.rank) return;
    if (finding_.first_writes || a.kind != ProcessKind::block || b.kind != ProcessKind::block) {
      return;
    }
    const ChunkName& c = finding_.chunk;
    const Buffer& buffer = program_.ranks[c.rank].buffers[c.buffer];
    if (buffer.kind != BufferKind::scratch || buffer.units != 0) return;
    d.notes.push_back(
        {fmt::format("or give '{}' 2 copies ('copies: 2'), and let rank {} begin each call with a "
                     "'signal ... relaxed' to rank {}, which rank {} takes with 'wait ... relaxed' "
                     "before it writes",
                     program_.name_of(buffer.name), a.rank, b.rank, b.rank)});
  }

  void note_near_miss(Diagnostic& d) const {
    if (system_.joint()) return;
    const std::optional<NearMiss> miss = near_miss(system_, finding_.first, finding_.second);
    if (!miss) return;
    d.notes.push_back(op_note(program_, program_.ranks[miss->rank].ops[miss->op], miss->why));
  }

  /// Are both ops of pipelines with equally many rounds, and is a round cut into other parts by one
  /// of them than by the other? What orders the rounds is not seen to order the parts (lemma L3).
  bool cut_at_one_side() const {
    const Event &a = finding_.first, &b = finding_.second;
    if (a.op == kNone || b.op == kNone || a.call != b.call) return false;
    const Origin first = origin(a), second = origin(b);
    if (first.op.loop == kNone || second.op.loop == kNone) return false;
    return std::max(first.op.parts, uint16_t{1}) != std::max(second.op.parts, uint16_t{1}) &&
           same_rate(first.program().loops[first.op.loop], second.program().loops[second.op.loop]);
  }
  void not_cut_alike() {
    Diagnostic& d = error("undecided", fmt::format("not decided: the rounds of a pipeline are cut "
                                                   "at one side only, at {}{}",
                                                   chunk(), placement()));
    for (const Event* e : {&finding_.first, &finding_.second}) {
      const Op& op = origin(*e).op;
      note(d, *e,
           fmt::format("{} has {} of a round{}", who(*e),
                       op.parts < 2 ? "all" : fmt::format("part {} of {}", op.part, op.parts),
                       place(*e)));
    }
    d.notes.push_back(
        {"what orders the rounds is not seen to order their parts: cut both sides "
         "alike, so that each block has its part from one other"});
  }

  /// Why ops that seem to touch different units may touch the same.
  void note_units(Diagnostic& d) const {
    const ChunkName& c = finding_.chunk;
    const uint32_t units = program_.ranks[c.rank].buffers[c.buffer].units;
    const bool same_round = finding_.first.call == finding_.second.call &&
                            finding_.first_round == finding_.second_round;
    if (units == 0 || same_round) return;
    d.notes.push_back(
        {fmt::format("it holds {} units of the pipeline, and round i uses unit i % "
                     "{}: one of the two may be {} rounds ahead, or more",
                     units, units, units)});
  }

  /// Why a semaphore that the later block takes does not order it after the earlier one: others
  /// release it, too, in rounds, and it is not known how many are still to come (lemma R2).
  void note_semaphores(Diagnostic& d) const {
    if (finding_.first.op == kNone || finding_.second.op == kNone) return;
    const Origin a = origin(finding_.first), b = origin(finding_.second);
    if (a.rank != b.rank || &a.part != &b.part || a.op.block == b.op.block) return;
    const Rank& rank = a.program().ranks[a.rank];
    std::map<uint32_t, std::set<uint32_t>> releasers;  // by semaphore: blocks
    std::set<uint32_t> taken;                          // by the later block
    for (const Op& op : rank.ops) {
      const bool releases = op.loop != kNone && info(op.kind).has(kReleases);
      const bool takes = info(op.kind).has(kAcquires) && op.block == b.op.block;
      for (const Operand& o : a.program().dsts(op)) {
        if (releases) releasers[o.first].insert(op.block);
        if (takes) taken.insert(o.first);
      }
    }
    for (const auto& [semaphore, blocks] : releasers) {
      if (blocks.size() < 2 || !blocks.contains(a.op.block) || !taken.contains(semaphore)) continue;
      d.notes.push_back({fmt::format(
          "tb {} release '{}' in a pipeline: the block that acquires it cannot know which release "
          "it takes; "
          "use a semaphore for each",
          fmt::join(blocks, " and "), a.program().text(rank.semaphores[semaphore].label))});
    }
  }

  /// Two plans in one place of scratch.
  void overlaid() {
    const Event &a = finding_.first, &b = finding_.second;
    Diagnostic& d =
        error("race", fmt::format("race at {}: nothing orders it and what another plan does to the "
                                  "same bytes of scratch",
                                  chunk()));
    note(d, a, fmt::format("{} may still be at work there{}", who(a), place(a)));
    note(d, b, fmt::format("{}{} begins{}", calls_apart(), who(b), place(b)));
    d.notes.push_back({remedy(system_, finding_).text});
  }
};

}  // namespace

void report_races(const System& system, const Finding& finding, Diagnostics& diagnostics) {
  RaceReport report(system, finding, diagnostics);
  if (finding.kind == Finding::Kind::race) return report.race();
  if (finding.kind == Finding::Kind::slot_twice) return report.slot_twice();
  report.no_packets();
}

}  // namespace mscclc::proof
