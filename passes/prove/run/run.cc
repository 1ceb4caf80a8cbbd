#include "passes/prove/run/run.h"

#include <algorithm>
#include <iterator>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

bool has_packets(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.buffers,
                               [](const Buffer& b) { return b.packets != PacketFormat::none; });
  });
}

/// By rank and buffer: does an op wait for packets there?
std::vector<std::vector<bool>> polled_buffers(const Program& program) {
  std::vector<std::vector<bool>> polled;
  for (const Rank& rank : program.ranks) {
    std::vector<bool>& buffers = polled.emplace_back(rank.buffers.size());
    for (const Op& op : rank.ops) {
      if (!info(op.kind).has(kPolls)) continue;
      for (const Operand& o : program.srcs(op)) {
        if (o.channel == kNone) buffers[o.buffer] = true;
      }
    }
  }
  return polled;
}

}  // namespace

Run::Run(const System& system, const LoopGroups& groups, const Symbols& symbols, RunOptions options)
    : system_(system),
      program_(system.program()),
      groups_(groups),
      symbols_(symbols),
      trace_(options.traced ? std::make_unique<ValueTrace>() : nullptr),
      turned_(symbols, system.symmetry(), trace_.get()),
      options_(std::move(options)),
      cuts_(program_, options_.rounds),
      unwritten_(symbols.unknown(0)),
      mixed_(symbols.unknown(1)),
      raced_(symbols.unknown(~uint64_t{0})),
      chained_(has_packets(program_)),
      polled_(polled_buffers(program_)),
      history_(system.chunks()),
      chains_(system),
      values_(system.chunks(), ChunkValue(unwritten_)),
      blocks_(system.width()),
      posted_(2 * system.ports()),
      arrivals_(2 * system.ports()),
      ends_(system.ends()),
      semaphores_(system.semaphores()),
      barriers_(system.ranks()),
      calls_(system.ranks(), 0),
      left_(system.ranks(), 0),
      caller_(system.ranks()),
      pages_(system.clock()),
      joins_(system.clock()),
      nodes_read_(system.ranks()),
      pieces_read_(system.ranks()),
      steps_(groups.groups().size()),
      begun_(groups.loops(), 0),
      in_step_(options_.in_step),
      shared_scratch_(system.ranks(), system.parts().size()) {
  if (trace_) begin_trace();
  for (uint32_t r = 0; r < system.ranks(); ++r) {
    const Rank& rank = program_.ranks[r];
    const std::vector<uint32_t> offsets = block_offsets(rank);
    for (uint32_t b = 0; b < system.blocks(r); ++b) {
      Block& block = blocks_[system.block_process(r, b)];
      block.rank = r;
      block.begin = offsets[b];
      block.end = offsets[b + 1];
    }
    for (uint32_t s = 0; s < rank.semaphores.size(); ++s) {
      semaphores_[system.semaphore(r, s)].free = rank.semaphores[s].initial;
    }
    for (uint32_t c = 0; c < rank.channels.size(); ++c) {
      if (rank.channels[c].credits != 0) ends_[system.end(r, c)].free = rank.channels[c].credits;
    }
  }
}

/// What has not been written gets a symbol by where it is. (Ranks that stand for others have too
/// many such chunks.)
void Run::begin_trace() {
  trace_->add_raced(raced_);
  trace_->add_unwritten(unwritten_);
  if (!system_.symmetry().trivial()) return;
  for (uint64_t chunk = 0; chunk < system_.chunks(); ++chunk) {
    values_[chunk] = ChunkValue(turned_.unwritten(chunk));
  }
}

Finding& Run::add_finding(Finding::Kind kind) {
  findings_.push_back({});
  findings_.back().kind = kind;
  findings_.back().in_place = system_.in_place();
  return findings_.back();
}

/// The first few findings of one place of the program are enough.
bool Run::may_report(uint64_t key) {
  constexpr size_t kMax = 50;
  return findings_.size() < kMax && reported_[key]++ == 0;
}

void Run::go() {
  find_sharing();
  if (!findings_.empty()) return;
  for (uint32_t r = 0; r < system_.ranks(); ++r) enter_call(r);
  do {
    while (!ready_.empty()) {
      const uint32_t process = ready_.back();
      ready_.pop_back();
      advance(process);
    }
  } while (release_held());
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    if (!premise(Premise::all_end, calls_[r] == calls_of(r))) return report_stuck();
  }
  report_balance();
  if (!premise(Premise::in_step, released_.empty())) report_out_of_step();
}

// ---- calls ----

/// The rank's caller hands over the buffers, and its blocks begin.
void Run::enter_call(uint32_t rank) {
  while (calls_[rank] < calls_of(rank)) {
    if (!premise(Premise::the_caller_fills_before, false))
      caller_touches(rank, calls_[rank], false);
    fill_buffers(rank, calls_[rank]);
    left_[rank] = end_of_blocks(rank) - first_block(rank);
    const uint32_t caller = system_.caller_process(rank);
    caller_[rank].raise(caller, calls_[rank] + 1, system_.clock());
    for (uint32_t b = first_block(rank); b < end_of_blocks(rank); ++b) {
      Block& block = blocks_[system_.block_process(rank, b)];
      block.op = block.begin;
      block.round = block.operand = 0;
      block.known = block.entry = caller_[rank];
      block.entry_time = block.settled = block.now;
      block.done = false;
      wake(system_.block_process(rank, b));
    }
    if (left_[rank] > 0) return;
    leave_call(rank);
  }
}

/// All blocks have ended: all they did is over, and all they know the caller knows.
void Run::leave_call(uint32_t rank) {
  Row& caller = caller_[rank];
  std::vector<ReadValue> reads;
  std::vector<Row> known;
  Pieces pieces = std::exchange(pieces_read_[rank], {});
  if (!pieces.news.empty()) {  // one block stands for the rank: after its last meeting it knows
    std::vector<News>& gains = blocks_[system_.block_process(rank, first_block(rank))].gains;
    std::ranges::move(pieces.news, std::back_inserter(gains));
  }
  for (uint32_t b = first_block(rank); b < end_of_blocks(rank); ++b) {
    const uint32_t process = system_.block_process(rank, b);
    Block& block = blocks_[process];
    meet(process);
    known.push_back(block.known);
    const std::vector<ReadValue>& read = block.nodes.values();
    reads.insert(reads.end(), read.begin(), read.end());
    block.nodes.clear();
    block.settled_nodes = 0;
    block.known = block.entry = {};  // the next call begins with what the caller knows
  }
  caller.join(known, system_.clock());
  for (uint32_t b = first_block(rank); b < end_of_blocks(rank); ++b) {
    const uint32_t process = system_.block_process(rank, b);
    caller.raise(process, blocks_[process].settled, system_.clock());
  }
  nodes_read_[rank].add_call(chains_, cuts_, std::move(reads));
  for (uint32_t s = 0; s < program_.ranks[rank].semaphores.size(); ++s) {
    Counter& counter = semaphores_[system_.semaphore(rank, s)];
    counter.by_releaser.clear();
    counter.taken = 0;
  }
  caller.share_pages(pages_);
  if (!options_.empty)
    check_outputs(rank, calls_[rank]);  // who wrote them last is not yet the caller
  if (!premise(Premise::the_caller_reads_after, false)) caller_touches(rank, calls_[rank], true);
  check_met(rank, calls_[rank]);
  ++calls_[rank];
}

/// Between calls the caller reads and writes its buffers as it likes: it reads the output when the
/// call is over, and has written both before it begins.
void Run::caller_touches(uint32_t rank, uint32_t call, bool leaving) {
  nodes_.clear();
  learned_.clear();
  const Event event{system_.caller_process(rank), call + 1 + (leaving ? 1 : 0), kNone, call};
  const Actor actor{event, &caller_[rank], event.process, event.time};
  const Record access{.event = event, .write = true};
  const uint32_t input = part_of(rank, call).input;
  std::vector<uint32_t> touched = {input + kInput, input + kOutput};
  const auto buffers = static_cast<uint32_t>(program_.ranks[rank].buffers.size());
  for (uint32_t b = kFirstScratch; options_.scratch_is_callers && b < buffers; ++b) {
    touched.push_back(b);
  }
  for (const uint32_t buffer : touched) {
    const uint32_t chunks = program_.ranks[rank].buffers[buffer].chunks;
    for (uint32_t c = 0; c < chunks; ++c) {
      const uint64_t chunk = system_.chunk(rank, buffer, c, call);
      if (history_.renew(chunk, event)) continue;  // untouched since
      check(actor, {chunk}, {rank, buffer, c}, access);
      history_.add_store(chunk, access);
    }
  }
}

/// What the caller hands over: outputs that hold anything, inputs of this call. In place an input
/// lies in an output, so it comes last.
void Run::fill_buffers(uint32_t rank, uint32_t call) {
  const std::vector<Buffer>& buffers = program_.ranks[rank].buffers;
  const Part& part = part_of(rank, call);
  const uint32_t input = part.input + kInput, output = part.input + kOutput;
  for (uint32_t c = 0; c < buffers[output].chunks; ++c) {
    const uint64_t chunk = system_.chunk(rank, output, c, call);
    const bool uncertain = options_.suspects && options_.suspects->callers.contains(chunk);
    const Symbol unwritten = trace_ ? turned_.unwritten(chunk) : unwritten_;  // distinct in a trace
    values_[chunk].write({}, 1, uncertain ? raced_ : unwritten, mixed_);
  }
  for (uint32_t c = 0; c < buffers[input].chunks; ++c) {
    Symbol symbol = turned_.contribution(rank, c, instance(rank, call));
    symbol.size = part.contract().size_class(Side::input, part.local[rank], c) + 1;
    values_[system_.chunk(rank, input, c, call)].write({}, 1, symbol, mixed_);
  }
}

/// What an output chunk must hold. Ranks that share their promises ask for the same again and
/// again.
const Run::Promised& Run::promised(uint32_t rank, uint32_t chunk, uint32_t call) {
  const bool shared = part_of(rank, call).contract().uniform() && !system_.joint();
  if (!shared) return unshared_ = promise(rank, chunk, call);
  const uint64_t key = uint64_t{call} << 32 | chunk;
  const auto known = promised_.find(key);
  if (known != promised_.end()) return known->second;
  return promised_.emplace(key, promise(rank, chunk, call)).first->second;
}

Run::Promised Run::promise(uint32_t rank, uint32_t chunk, uint32_t call) {
  const Part& part = part_of(rank, call);
  Promised promised;
  Promise promise;
  if (part.contract().promise(part.local[rank], chunk, promise)) {
    promised.made = true;
    promised.symbol.terms = 0;
    const bool sum = promise.inputs.size() > 1;
    const uint64_t number = instance(rank, call);
    for (const Place& p : promise.inputs) {
      const Symbol term = symbols_.contribution(part.world[p.rank], p.chunk, number);
      promised.symbol.low += term.low;
      promised.symbol.high += term.high + (promised.symbol.low < term.low ? 1 : 0);
      promised.symbol.terms = added_terms(promised.symbol.terms, term.terms);
      if (sum) promised.added.push_back(part.world[p.rank]);
    }
    std::ranges::sort(promised.added);
    if (promise.reduced && sum && divides(rank, call)) {
      promised.symbol = symbols_.rounded(promised.symbol, true);
    }
  }
  return promised;
}

void Run::check_outputs(uint32_t rank, uint32_t call) {
  const std::vector<Buffer>& buffers = program_.ranks[rank].buffers;
  const uint32_t input = part_of(rank, call).input + kInput;
  const uint32_t output = part_of(rank, call).input + kOutput;
  for (uint32_t c = 0; c < buffers[output].chunks; ++c) {
    const Promised& wanted = promised(rank, c, call);
    if (!wanted.made) continue;
    const Symbol found = values_[system_.chunk(rank, output, c, call)].read({}, mixed_);
    if (!premise(Premise::results_are_promised, found.same_contributions(wanted.symbol))) {
      report_wrong_value({rank, output, c}, call, wanted.symbol);
      continue;
    }
    if (call == 0 && !wanted.added.empty()) check_sum({rank, output, c}, wanted.added, found);
  }
  // Not needed where input and output are in one place.
  const uint32_t inputs = system_.in_place() ? 0 : buffers[input].chunks;
  for (uint32_t c = 0; c < inputs; ++c) {
    const uint64_t chunk = system_.chunk(rank, input, c, call);
    const uint32_t newest = history_.stores(chunk);
    if (newest != kNone && history_.record(newest).event.op == kNone) continue;  // the caller's
    const Symbol found = values_[chunk].read({}, mixed_);
    if (premise(Premise::inputs_are_kept,
                found.same_contributions(symbols_.contribution(rank, c, instance(rank, call))))) {
      continue;
    }
    facts_.keeps_input = false;
  }
}

/// For a barrier: no rank leaves before all are in.
void Run::check_met(uint32_t rank, uint32_t call) {
  const Part& part = part_of(rank, call);
  for (const uint32_t q : part.world) {
    if (premise(Premise::all_have_met,
                caller_[rank][system_.caller_process(q)] > call_of(q, instance(rank, call)))) {
      continue;
    }
    facts_.meets = false;
    if (premise(Premise::barriers_meet, part.contract().kind != CollectiveKind::barrier) ||
        !may_report(q))
      continue;
    Finding& finding = add_finding(Finding::Kind::not_met);
    finding.rank = rank;
    finding.chunk.rank = q;
  }
}

// ---- ops ----

/// Lets a thread block go on until it must wait or has done the call.
void Run::advance(uint32_t process) {
  Block& block = blocks_[process];
  if (block.done) return;
  while (block.op < block.end) {
    const Op& op = op_of(block);
    if (op.loop != kNone && cuts_.rounds(op.loop) == 0) {
      ++block.op;
      continue;
    }
    if (op.loop != kNone && block.loop == kNone && !begin_round(process, op.loop)) return;
    const uint32_t at = block.op, round = block.round;
    if (!do_op(process, op)) return;
    if (block.op != at || block.round != round) return;  // a barrier went on with it
    next_op(process);
  }
  block.done = true;
  if (--left_[block.rank] > 0) return;
  leave_call(block.rank);
  enter_call(block.rank);
}

/// Goes to the next op: the body of a pipeline begins again until all rounds are done.
void Run::next_op(uint32_t process) {
  Block& block = blocks_[process];
  const std::vector<Op>& ops = program_.ranks[block.rank].ops;
  const uint32_t loop = ops[block.op].loop;
  ++block.now;
  block.operand = 0;
  ++block.op;
  if (loop == kNone || (block.op < block.end && ops[block.op].loop == loop)) return;
  end_round(block);
  if (++block.round == cuts_.rounds(loop)) {
    block.round = 0;
    return;
  }
  while (block.op > block.begin && ops[block.op - 1].loop == loop) --block.op;
}

bool Run::do_op(uint32_t process, const Op& op) {
  const OpInfo& row = info(op.kind);
  if (!row.moves_data()) return do_control(process, op, row);
  if (options_.empty) {  // nothing to wait for, nothing to move
    publish_move(process, op, row);
    return true;
  }
  nodes_.clear();
  if (row.has(kPolls) && !await_packets(process, op)) return false;
  move(process, op, row);
  return true;
}

void Run::report_stuck() {
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    for (uint32_t b = 0; b < system_.blocks(r); ++b) {
      if (report_lost_packets(system_.block_process(r, b))) return;
    }
  }
  Finding& finding = add_finding(Finding::Kind::stuck);
  for (uint32_t r = 0; r < system_.ranks(); ++r) {  // one block of each will do
    for (uint32_t b = 0; b < system_.blocks(r); ++b) {
      const uint32_t process = system_.block_process(r, b);
      if (!is_stuck(process)) continue;
      const Block& block = blocks_[process];
      finding.waiting.push_back({process, block.now, block.op, calls_[r]});
      break;
    }
  }
  finding.first = finding.waiting.front();
}

/// Is it a block that has begun a call and does not end it?
bool Run::is_stuck(uint32_t process) const {
  const Process& p = system_.processes()[process];
  if (p.kind != ProcessKind::block || calls_[p.rank] == calls_of(p.rank)) return false;
  if (p.index < first_block(p.rank) || p.index >= end_of_blocks(p.rank)) return false;
  return !blocks_[process].done;
}

/// A block that waits for packets in vain because those of a later call have taken their place: its
/// reads and that store are in no order.
bool Run::report_lost_packets(uint32_t process) {
  const Block& block = blocks_[process];
  if (!is_stuck(process) || block.op == block.end) return false;
  if (!info(op_of(block).kind).has(kPolls)) return false;
  const Op& op = op_of(block);
  const uint32_t call = calls_[block.rank];
  for (const Operand& o : program_.srcs(op)) {
    for (uint32_t k = 0; o.channel == kNone && k < o.count; ++k) {
      const uint64_t chunk = system_.chunk(block.rank, o.buffer, o.first + k, call);
      const Event reader{process, block.now + 1, block.op, call};
      if (report_overtaken(reader, chunk, {block.rank, o.buffer, o.first + k}, {})) return true;
    }
  }
  return false;
}

/// Packets of a later call that have come into a slot before those of the reader's call are read:
/// nothing keeps them from taking their place.
bool Run::report_overtaken(const Event& reader, uint64_t chunk, const ChunkName& name,
                           const Extent& extent) {
  for (uint32_t i = history_.stores(chunk); i != kNone; i = history_.record(i).next) {
    const Record& later = history_.record(i);
    if (later.packets == kNone ||
        premise(Premise::packets_are_not_overtaken, later.event.call <= reader.call))
      continue;
    if (!later.extent.may_touch(extent)) continue;
    if (options_.suspects != nullptr) return true;
    suspect(name, {.event = reader}, later);
    if (!may_report(report_key(reader, later.event))) return true;
    Finding& finding = add_finding(Finding::Kind::race);
    finding.first = reader;
    finding.second = later.event;
    finding.chunk = name;
    finding.second_writes = true;
    return true;
  }
  return false;
}

/// Every count must be back where it was, or the next calls begin with more and more.
void Run::report_balance() {
  const auto report = [&](const Counter& counter, uint32_t rank, uint32_t channel,
                          uint32_t semaphore) {
    if (premise(Premise::counts_return, counter.balance == 0)) return;
    Finding& finding = add_finding(Finding::Kind::unbalanced);
    finding.rank = rank;
    finding.channel = channel;
    finding.semaphore = semaphore;
    // All calls of a plan do the same.
    finding.surplus = counter.balance / (system_.joint() ? 1 : int64_t{options_.calls});
  };
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    const Rank& rank = program_.ranks[r];
    for (uint32_t c = 0; c < rank.channels.size(); ++c) {
      report(ends_[system_.end(r, c)], r, c, kNone);
    }
    for (uint32_t s = 0; s < rank.semaphores.size(); ++s) {
      report(semaphores_[system_.semaphore(r, s)], r, kNone, s);
    }
  }
}

}  // namespace mscclc::proof
