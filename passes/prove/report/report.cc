#include "passes/prove/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "ir/print/print.h"
#include "ir/print/row_names.h"
#include "ir/report/op_error.h"
#include "passes/prove/loops/rates.h"
#include "passes/prove/report/missing_edge.h"
#include "passes/prove/report/near_miss.h"
#include "passes/prove/report/removed_ops.h"
#include "passes/prove/report/report_counts.h"
#include "passes/symbolic/symbolic_run.h"

namespace mscclc::proof {
namespace {

class Reporter {
 public:
  Reporter(const System& system, const Finding& finding, Diagnostics& diagnostics)
      : system_(system), program_(system.program()), finding_(finding), diagnostics_(diagnostics) {}

  void run() {
    switch (finding_.kind) {
      case Finding::Kind::race:
        return race();
      case Finding::Kind::slot_twice:
        return slot_twice();
      case Finding::Kind::no_packets:
        return no_packets();
      case Finding::Kind::wrong_value:
        return wrong_value();
      case Finding::Kind::wrong_external:
        return wrong_external();
      case Finding::Kind::other_order:
        return other_order();
      case Finding::Kind::stuck:
        return stuck();
      case Finding::Kind::unbalanced:
        return report_unbalanced(program_, finding_, diagnostics_);
      case Finding::Kind::not_met:
        return report_not_met(finding_, diagnostics_);
      case Finding::Kind::unpaired:
        return unpaired();
      case Finding::Kind::out_of_step:
        return out_of_step();
      case Finding::Kind::flag_count:
        return report_flag_count(finding_, diagnostics_);
      case Finding::Kind::flag_stuck:
        return flag_stuck();
      case Finding::Kind::undecided:
        return undecided();
    }
  }

 private:
  const Process& process(const Event& e) const { return system_.processes()[e.process]; }
  /// An op as its plan has it.
  struct Origin {
    const Part& part;
    uint32_t rank;  ///< of the plan
    const Op& op;
    const Program& program() const { return *part.program; }
  };
  Origin origin(const Event& e) const {
    const uint32_t rank = process(e).rank;
    const Part& part = system_.part_of_op(rank, e.op);
    return {part, part.local[rank], part.rank(rank).ops[e.op - part.first_op[rank]]};
  }

  std::string chunk() const { return chunk(finding_.chunk); }
  std::string chunk(const ChunkName& c) const {
    const Part& part = system_.part_of_buffer(c.rank, c.buffer);
    const uint32_t buffer = system_.is_callers(c.buffer)
                                ? c.buffer - part.input
                                : c.buffer - part.first_scratch[c.rank] + kFirstScratch;
    const Buffer& named = part.rank(c.rank).buffers[buffer];
    return fmt::format("{} of rank {}", run_text(*part.program, named, c.chunk, 1), c.rank);
  }
  std::string placement() const { return finding_.in_place ? " in place" : ""; }

  std::string who(const Event& e) const {
    const Process& p = process(e);
    if (p.kind == ProcessKind::caller) return fmt::format("the caller of rank {}", p.rank);
    if (p.kind == ProcessKind::flag) {
      return fmt::format("the other side of '{}'{}", flag_name(e),
                         e.op == kNone ? "" : ", once notified,");
    }
    const Origin o = origin(e);
    std::string text = fmt::format("'{}'", print_op(o.program(), o.rank, o.op));
    if (p.kind == ProcessKind::port_reader) return "the port (later than the block), for " + text;
    if (p.kind == ProcessKind::port_writer) return "the port, for " + text;
    return text;
  }
  /// "tiles[3]" of what the other side does.
  std::string flag_name(const Event& e) const { return flag_name_of(program_, process(e).index); }
  std::string place(const Event& e) const {
    if (e.op == kNone) return "";
    const Origin o = origin(e);
    return fmt::format(" ({}{})", print_place(o.program(), o.rank, o.op), of_plan(e));
  }
  /// ", of 'ring.mscl'", and which rank of the world that is, if there are several plans.
  std::string of_plan(const Event& e) const {
    if (!system_.joint()) return "";
    const Origin o = origin(e);
    const uint32_t world = process(e).rank;
    return world == o.rank
               ? fmt::format(", of '{}'", o.part.name)
               : fmt::format(", of '{}', which is rank {} of the world", o.part.name, world);
  }
  /// "in the call after it", seen from the earlier of the two.
  std::string calls_apart() const {
    const int64_t apart = int64_t{finding_.second.call} - finding_.first.call;
    if (apart == 0) return "";
    if (apart > 0) return apart == 1 ? "one call later, " : fmt::format("{} calls later, ", apart);
    return apart == -1 ? "one call earlier, " : fmt::format("{} calls earlier, ", -apart);
  }
  std::string does(const Event& e, bool writes) const {
    if (process(e).kind == ProcessKind::caller) return "may change";
    if (process(e).kind == ProcessKind::flag) {
      return writes ? "may still be writing" : "reads";
    }
    return writes ? "writes" : "reads";
  }

  /// An error at the op of one of the events, the later one unless that is the caller.
  Diagnostic& error(const char* code, const std::string& message) {
    const Event& at = finding_.second.op != kNone ? finding_.second : finding_.first;
    if (at.op == kNone) return with_edge(diagnostics_.error(code, {}, message));
    const Origin o = origin(at);
    Diagnostic& d = op_error(diagnostics_, code, o.program(), o.rank, placed(at), message);
    note_fused(d, at);
    return with_edge(d);
  }
  /// The two accesses, each at the place of the operands that are meant.
  Diagnostic& with_edge(Diagnostic& d) const {
    using enum Finding::Kind;
    static constexpr Finding::Kind kOfChunks[] = {race, slot_twice, no_packets, wrong_value};
    if (std::ranges::find(kOfChunks, finding_.kind) == std::end(kOfChunks)) return d;
    const bool unwritten = finding_.reader.op != kNone;
    d.missing =
        missing_edge(system_, finding_, chunk(unwritten ? finding_.unwritten : finding_.chunk));
    place_access(d.missing->first, finding_.first);
    place_access(d.missing->second, unwritten ? finding_.reader : finding_.second);
    return d;
  }
  void place_access(EdgeEnd& access, const Event& e) const {
    if (e.op == kNone || access.op.empty()) return;
    Note at = op_note(origin(e).program(), placed(e), "");
    access.span = at.span;
    access.file = std::move(at.file);
    access.loop = loop_values(origin(e).program(), placed(e));
  }
  void note(Diagnostic& d, const Event& e, const std::string& text) const {
    if (e.op == kNone) {
      d.notes.push_back({text});
    } else {
      d.notes.push_back(op_note(origin(e).program(), placed(e), text));
    }
  }

  /// The op with the one location that the finding is about: of a fused op with a location for each
  /// pair of operands, that of the pair.
  Op placed(const Event& e) const {
    Op op = origin(e).op;
    if (const uint32_t pair = pair_of(e, op); pair != kNone)
      op.locations = {op.locations.first + pair, 1};
    return op;
  }
  uint32_t pair_of(const Event& e, const Op& op) const {
    if (!info(op.kind).srcs.slot[0].pairwise || op.locations.count != op.dsts) return kNone;
    if (&e == &finding_.reader) return finding_.reader_pair;
    if (finding_.kind != Finding::Kind::race) return kNone;
    return &e == &finding_.first ? finding_.first_pair : finding_.second_pair;
  }
  /// Where else a fused op comes from, if nothing says which of its places is meant.
  void note_fused(Diagnostic& d, const Event& e) const {
    const Origin o = origin(e);
    if (o.op.locations.count < 2 || pair_of(e, o.op) != kNone) return;
    std::vector<uint32_t> named = {o.program().locations[o.op.locations.first].site};
    for (uint32_t i = 1; i < o.op.locations.count; ++i) {
      Op part = o.op;
      part.locations = {o.op.locations.first + i, 1};
      const uint32_t site = o.program().locations[part.locations.first].site;
      if (std::ranges::find(named, site) != named.end()) continue;
      named.push_back(site);
      d.notes.push_back(op_note(o.program(), part, "that op has been fused with this one"));
    }
  }

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
    const ChunkName& c = finding_.chunk;
    Diagnostic& d = error(
        "wrong-result",
        fmt::format("chunk {} of the external '{}' of rank {} does not hold what the collective "
                    "promises at the end of a call{}",
                    c.chunk, program_.externals[c.buffer].name, c.rank, placement()));
    if (finding_.first.op != kNone) note(d, finding_.first, "this op wrote it last");
    for (const std::string& text : finding_.notes) d.notes.push_back({text});
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

  /// How the sum is made (finding_.notes[0]), and where it was first seen (alike, notes[1]).
  void other_order() {
    const Contract& contract = program_.contract;
    Diagnostic& d = error("sum-order", fmt::format("{} does not keep 'order: {}'{}", chunk(),
                                                   name(contract.order), placement()));
    if (finding_.first.op != kNone) note(d, finding_.first, "this op wrote it last");
    if (finding_.notes.size() == 2) {
      const bool rounds = finding_.notes[0].find('[') != std::string::npos;
      d.notes.push_back(
          {fmt::format("it is {}, where xr is what rank r contributes{}", finding_.notes[0],
                       rounds ? ", and sums in brackets are rounded" : "")});
      if (finding_.notes[0] != finding_.notes[1]) {
        d.notes.push_back({fmt::format("{} is {}", chunk(finding_.alike[0]), finding_.notes[1])});
      }
    }
    d.notes.push_back(
        {fmt::format("'{}' means: {}", name(contract.order), summary(contract.order))});
    d.notes.push_back(
        {contract.order == SumOrder::exact
             ? "give one op the contributions of all ranks, as they are, and the option "
               "'exact'; a sum of parts is rounded on the way"
             : "list the operands of each sum in that order, the rank's own in its "
               "place"});
  }

  /// Is every reduction a minimum or a maximum?
  bool repeats_are_harmless() const {
    return std::ranges::all_of(program_.ranks, [](const Rank& rank) {
      return std::ranges::all_of(rank.ops, [](const Op& op) {
        return !info(op.kind).has(kReduces) || op.reduce == ReduceOp::min ||
               op.reduce == ReduceOp::max;
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

  void flag_stuck() {
    Diagnostic& d = error("flag-stuck", finding_.text);
    for (const std::string& text : finding_.notes) d.notes.push_back({text});
  }

  void undecided() {
    Diagnostic& d = error("undecided", "not decided: " + finding_.text);
    for (const std::string& text : finding_.notes) d.notes.push_back({text});
  }

  const System& system_;
  const Program& program_;
  const Finding& finding_;
  Diagnostics& diagnostics_;
};

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
  Reporter(system, ordered, diagnostics).run();
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
