#include "passes/prove/run/run.h"

#include <algorithm>
#include <utility>

#include "ir/program/flag_regions.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

bool has_packets(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.buffers,
                               [](const Buffer& b) { return b.packets != PacketFormat::none; });
  });
}

}  // namespace

Run::Run(const System& system, const LoopGroups& groups, const Symbols& symbols, RunOptions options)
    : system_(system),
      program_(system.program()),
      options_(std::move(options)),
      findings_(system.in_place()),
      cuts_(program_, options_.rounds),
      calls_(system, options_),
      blocks_(system),
      knowledge_(system, calls_, blocks_),
      rounds_(groups, cuts_, calls_, blocks_, options_.in_step),
      counters_(system, blocks_, knowledge_, findings_),
      barriers_(system, blocks_, knowledge_, rounds_),
      flags_(system, calls_, blocks_),
      left_(system.ranks(), 0),
      history_(system.chunks()),
      chains_(system),
      bytes_(system, groups, cuts_, calls_),
      contents_(system, symbols, options_, calls_, at_hand_),
      externals_(program_, calls_, contents_),
      value_(system, symbols, calls_, bytes_, contents_),
      races_(system, options_, calls_, history_, findings_),
      order_(access_parts(), has_packets(program_)),
      slots_(access_parts(), contents_, order_, findings_),
      moves_(system, options_, calls_, blocks_, knowledge_, counters_,
             {.cuts = cuts_,
              .bytes = bytes_,
              .at_hand = at_hand_,
              .history = history_,
              .chains = chains_,
              .contents = contents_,
              .value = value_,
              .externals = externals_,
              .order = order_,
              .slots = slots_}),
      results_(system, symbols, options_, calls_, history_, contents_, externals_, findings_) {}

AccessParts Run::access_parts() {
  return {.system = system_,
          .calls = calls_,
          .knowledge = knowledge_,
          .blocks = blocks_,
          .cuts = cuts_,
          .bytes = bytes_,
          .at_hand = at_hand_,
          .history = history_,
          .chains = chains_,
          .races = races_};
}

RunFacts Run::facts() const {
  return {.orders = results_.orders(),
          .meets = meets_,
          .keeps_input = results_.keep_input(),
          .adds_sums = value_.adds_sums()};
}

void Run::go() {
  counters_.find_users(cuts_);
  if (!findings_.empty()) return;
  for (uint32_t r = 0; r < system_.ranks(); ++r) enter_call(r);
  do {
    for (uint32_t p = blocks_.next_ready(); p != kNone; p = blocks_.next_ready()) advance(p);
  } while (rounds_.release_held());
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    if (!premise(Premise::all_end, calls_.now(r) == calls_.count(r))) return report_stuck();
  }
  counters_.report_balance(system_.joint() ? 1 : int64_t{options_.calls});
  rounds_.report(findings_);
}

// ---- calls ----

/// The rank's caller hands over the buffers, and its blocks begin.
void Run::enter_call(uint32_t rank) {
  while (calls_.now(rank) < calls_.count(rank)) {
    const uint32_t call = calls_.now(rank);
    if (!premise(Premise::the_caller_fills_before, false)) caller_touches(rank, call, false);
    contents_.begin_call(rank, call);
    externals_.begin_call(rank);
    const uint32_t first = calls_.first_block(rank), end = calls_.end_of_blocks(rank);
    left_[rank] = end - first;
    knowledge_.begin_call(rank);
    for (uint32_t b = first; b < end; ++b) {
      const uint32_t process = system_.block_process(rank, b);
      blocks_[process].begin_call(knowledge_.caller(rank));
      blocks_.wake(process);
    }
    if (left_[rank] > 0) return;
    leave_call(rank);
  }
}

/// All blocks have ended.
void Run::leave_call(uint32_t rank) {
  const uint32_t call = calls_.now(rank);
  slots_.end_call(rank);
  order_.end_call(rank, knowledge_.end_call(rank));
  if (flags_.any()) flags_.end_call(rank, knowledge_.caller(rank), findings_);
  counters_.end_call(rank);
  if (!options_.empty) results_.check(rank, call);  // who wrote them last is not yet the caller
  if (!premise(Premise::the_caller_reads_after, false)) caller_touches(rank, call, true);
  check_met(rank, call);
  calls_.next(rank);
}

/// Between calls the caller reads and writes its buffers as it likes: it reads the output when the
/// call is over, and has written both before it begins.
void Run::caller_touches(uint32_t rank, uint32_t call, bool leaving) {
  at_hand_.begin();
  const Event own{system_.caller_process(rank), call + 1 + (leaving ? 1 : 0), kNone, call};
  const uint32_t input = calls_.part(rank, call).input;
  std::vector<uint32_t> touched = {input + kInput, input + kOutput};
  if (flags_.any()) std::swap(touched[0], touched[1]);  // in place the input is filled last
  const auto buffers = static_cast<uint32_t>(program_.ranks[rank].buffers.size());
  for (uint32_t b = kFirstScratch; options_.scratch_is_callers && b < buffers; ++b) {
    touched.push_back(b);
  }
  for (const uint32_t buffer : touched) {
    const uint32_t chunks = program_.ranks[rank].buffers[buffer].chunks;
    for (uint32_t c = 0; c < chunks; ++c) {
      const uint64_t chunk = system_.chunk(rank, buffer, c, call);
      if (chunk == kNoChunk) continue;
      // What a flag is for the other side writes, in its own time (lemma F2).
      const uint32_t flag = leaving || !flags_.any() ? kNone : flags_.of_input(rank, buffer, c);
      const bool by_caller = premise(Premise::regions_are_written_until_raised, flag == kNone);
      if (by_caller && history_.renew(chunk, own)) continue;  // untouched since
      const Event event = by_caller ? own : flags_.event(rank, flag, false);
      const Actor actor{event, &knowledge_.caller(rank), own.process, own.time};
      const Record access{.event = event, .write = true};
      order_.check(actor, {chunk}, {rank, buffer, c}, access);
      history_.add_store(chunk, access);
    }
  }
}

/// From now on the other side may read what the flag is for, knowing what those that raised it knew
/// (lemma F3).
void Run::other_side_reads(uint32_t rank, const Flags::Raised& raised) {
  if (premise(Premise::regions_are_read_once_notified, false)) return;
  at_hand_.begin();
  const uint32_t call = calls_.now(rank);
  const uint32_t number = flag_number(program_, raised.array, raised.flag);
  Event event = flags_.event(rank, number, true);
  event.op = raised.op;
  const Actor actor{event, raised.known, event.process, 0};
  const Record access{.event = event};
  const FlagRegion region = flag_region(program_, rank, raised.array, raised.flag);
  for (uint32_t c = region.first; c < region.first + region.count; ++c) {
    const Spot spot{system_.chunk(rank, region.buffer, c, call)};
    order_.check(actor, spot, {rank, region.buffer, c}, access);
    order_.keep(spot, access);
  }
}

void Run::notify(uint32_t process, const Op& op) {
  std::vector<Flags::Raised> complete;
  flags_.notify(process, op, knowledge_.strong_news(process), complete);
  if (options_.empty) return;
  for (const Flags::Raised& raised : complete) other_side_reads(blocks_[process].rank, raised);
}

/// For a barrier: no rank leaves before all are in.
void Run::check_met(uint32_t rank, uint32_t call) {
  const Part& part = calls_.part(rank, call);
  for (const uint32_t q : part.world) {
    const uint32_t entered = knowledge_.caller(rank)[system_.caller_process(q)];
    if (premise(Premise::all_have_met, entered > calls_.call_of(q, calls_.instance(rank, call)))) {
      continue;
    }
    meets_ = false;
    if (premise(Premise::barriers_meet, part.contract().kind != CollectiveKind::barrier) ||
        !findings_.may_report(q))
      continue;
    Finding& finding = findings_.add(Finding::Kind::not_met);
    finding.rank = rank;
    finding.chunk.rank = q;
  }
}

// ---- ops ----

/// Lets a thread block go on until it must wait or has done the call.
void Run::advance(uint32_t process) {
  ThreadBlock& block = blocks_[process];
  if (block.done) return;
  while (block.op < block.end) {
    const Op& op = blocks_.op_of(block);
    if (op.loop != kNone && rounds_.count(op.loop) == 0) {
      ++block.op;
      continue;
    }
    if (op.loop != kNone && block.loop == kNone && !rounds_.begin(process, op.loop)) return;
    const uint32_t at = block.op, round = block.round;
    if (!do_op(process, op)) return;
    if (block.op != at || block.round != round) return;  // a barrier went on with it
    rounds_.next_op(process, program_.ranks[block.rank].ops);
  }
  block.done = true;
  if (--left_[block.rank] > 0) return;
  leave_call(block.rank);
  enter_call(block.rank);
}

/// False if the block must wait.
bool Run::do_op(uint32_t process, const Op& op) {
  const OpInfo& row = info(op.kind);
  const bool gives = row.has(kSignals) || row.has(kReleases) || row.has(kNotifiesFlags);
  if (gives || row.cost == CostClass::kPacket) ++blocks_[process].acts;
  if (!row.moves_data()) return do_control(process, op, row);
  if (options_.empty) {  // nothing to wait for, nothing to move
    counters_.publish_move(process, op, row);
    return true;
  }
  at_hand_.nodes.clear();
  if (row.has(kPolls) && !slots_.await(process, op)) return false;
  moves_.move(process, op, row);
  return true;
}

/// Ops that move no data: who learns what from whom.
bool Run::do_control(uint32_t process, const Op& op, const OpInfo& row) {
  if (row.has(kMeets)) return barriers_.arrive(process, op);
  if (row.has(kSyncs)) knowledge_.meet(process);
  if (row.has(kWaits)) return counters_.take(process, op, false);
  if (row.has(kAcquires)) return counters_.take(process, op, true);
  if (row.has(kAwaitsFlags)) return flags_.await(process, op);
  if (row.has(kNotifiesFlags)) return notify(process, op), true;
  for (const Operand& o : program_.dsts(op)) {
    if (row.has(kSignals)) counters_.signal(process, o, op.relaxed);
    if (row.has(kFlushes)) counters_.flush(process, o.channel);
    if (row.has(kReleases)) counters_.release(process, o);
  }
  return true;
}

/// Is it a block that has begun a call and does not end it?
bool Run::is_stuck(uint32_t process) const {
  const Process& p = system_.processes()[process];
  if (p.kind != ProcessKind::block || calls_.now(p.rank) == calls_.count(p.rank)) return false;
  if (p.index < calls_.first_block(p.rank) || p.index >= calls_.end_of_blocks(p.rank)) return false;
  return !blocks_[process].done;
}

/// Reports a block that waits for a flag which the other side need not raise.
bool Run::explain_flags(uint32_t process) {
  const ThreadBlock& block = blocks_[process];
  if (block.op >= block.end) return false;
  Finding finding{};
  if (!flags_.explain_stuck(block.rank, blocks_.op_of(block), finding)) return false;
  Finding& added = findings_.add(Finding::Kind::flag_stuck);
  added.first = {process, block.now, block.op, calls_.now(block.rank)};
  added.text = std::move(finding.text);
  added.notes = std::move(finding.notes);
  return true;
}

void Run::report_stuck() {
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    for (uint32_t b = 0; b < system_.blocks(r); ++b) {
      const uint32_t process = system_.block_process(r, b);
      if (!is_stuck(process)) continue;
      if (slots_.report_lost(process) || explain_flags(process)) return;
    }
  }
  Finding& finding = findings_.add(Finding::Kind::stuck);
  for (uint32_t r = 0; r < system_.ranks(); ++r) {  // one block of each will do
    for (uint32_t b = 0; b < system_.blocks(r); ++b) {
      const uint32_t process = system_.block_process(r, b);
      if (!is_stuck(process)) continue;
      const ThreadBlock& block = blocks_[process];
      finding.waiting.push_back({process, block.now, block.op, calls_.now(r)});
      break;
    }
  }
  finding.first = finding.waiting.front();
}

}  // namespace mscclc::proof
