#include "executor/cost/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "executor/cost/timeline_run.h"

namespace mscclc::cost {

using device::DeviceOp;
using device::StepKind;

namespace {

/// Of a run: what takes a minute, and a few GiB of memory.
constexpr uint64_t kMaxEvents = 80'000'000;

/// Has a rank's GPU room for two calls, so that one can begin while the last one ends? That is
/// looked at for plans of packets, whose calls may end as soon as the last packets have come.
bool has_room_for_two(const RankProgram& lowered, uint64_t blocks, uint64_t threads,
                      const Machine& machine) {
  const auto of_packets = [](const DeviceOp& op) { return op.format != PacketFormat::none; };
  if (std::ranges::none_of(lowered.ops, of_packets)) return true;
  const uint64_t each = std::max<uint64_t>(1, machine.launch_packet_threads / threads);
  return 2 * blocks <= machine.launch_multiprocessors * each;
}

}  // namespace

void Run::build(const Call& call) {
  const auto ranks = static_cast<uint32_t>(program_.ranks.size());
  ends_.assign(calls_, 0);
  ranks_.reserve(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    const RankProgram& lowered = device_.ranks[r];
    const Rank& rank = program_.ranks[r];
    RankState state(WorkOut(program_, lowered, r, machine_, call), JoinedCopies(lowered));
    state.ends.resize(rank.channels.size());
    for (size_t c = 0; c < rank.channels.size(); ++c) {
      state.ends[c].begin_with(rank.channels[c].credits);
    }
    state.semaphores.resize(rank.semaphores.size());
    for (size_t s = 0; s < rank.semaphores.size(); ++s) {
      state.semaphores[s].begin_with(rank.semaphores[s].initial);
    }
    state.barriers.resize(lowered.barriers.size());
    state.begun.resize(lowered.buffers.size());
    state.come.resize(lowered.buffers.size());
    state.hops.resize(lowered.buffers.size());
    state.first_block = static_cast<uint32_t>(blocks_.size());
    state.blocks = static_cast<uint32_t>(lowered.block_begin.size()) - 1;
    if (!has_room_for_two(lowered, state.blocks, state.work.threads(), machine_)) {
      state.late = ns(machine_.launch_late_ns);
    }
    for (uint32_t b = 0; b < state.blocks; ++b) {
      Block block;
      block.rank = r;
      block.block = b;
      block.frame.rank = lowered.view();
      blocks_.push_back(std::move(block));
    }
    ranks_.push_back(std::move(state));
  }
}

/// The more blocks a call has, the later the last of them begins: by as much for each doubling.
static double doublings(uint32_t blocks) {
  const uint64_t count = uint64_t{blocks} + 1, whole = std::bit_floor(count);
  return std::bit_width(whole) - 1 +
         static_cast<double>(count - whole) / static_cast<double>(whole);
}

void Run::launch(uint32_t rank) {
  RankState& state = ranks_[rank];
  const RankProgram& lowered = device_.ranks[rank];
  state.running = state.blocks;
  const double begin = now() + ns(machine_.launch_call_ns) +
                       ns(machine_.launch_block_ns) * doublings(state.blocks) +
                       (state.call > 0 ? state.late : 0);
  if (state.blocks == 0) {
    ends_[state.call] = std::max(ends_[state.call], begin);
    return;
  }
  for (uint32_t i = 0; i < state.blocks; ++i) {
    Block& b = blocks_[state.first_block + i];
    b.op = lowered.block_begin[i];
    b.end = lowered.block_begin[i + 1];
    b.body_end = 0;
    b.round = 0;
    b.frame.round_begin = b.frame.round_unit = 0;
    b.call = state.call;
    b.phase = Phase::fetch;
    b.hops = 0;
    b.record = b.last_record = kNoRecord;
    events_.push(begin, EventKind::go_on, state.first_block + i);
  }
}

/// Goes to the block's next step, round after round in a pipeline. False: there is none.
bool Run::fetch(Block& b) {
  const DeviceOp* ops = b.frame.rank.ops;
  for (;;) {
    if (b.body_end != 0 && b.op == b.body_end) {
      if (--b.rounds_left > 0) {
        b.op = b.body;
        ++b.round;
        b.frame.round_begin += b.frame.round_unit;
      } else {
        b.body_end = 0;
        b.round = 0;
        b.frame.round_begin = b.frame.round_unit = 0;
      }
    }
    if (b.op == b.end) return false;
    if (rank_of(b).copies.is_joined(b.op)) {
      ++b.op;
      continue;
    }
    if (ops[b.op].kind != StepKind::pipeline) return true;
    const device::DeviceLoop& loop = b.frame.rank.loops[ops[b.op].first];
    b.body = b.op + 1;
    const uint32_t body_end = b.body + ops[b.op].count;
    if (loop.rounds == 0 || body_end == b.body) {
      b.op = body_end;
      continue;
    }
    b.op = b.body;
    b.body_end = body_end;
    b.rounds_left = loop.rounds;
    b.frame.round_unit = loop.unit;
  }
}

void Run::go_on(uint32_t block) {
  Block& b = at(block);
  switch (b.phase) {
    case Phase::fetch:
      if (fetch(b)) {
        begin_step(block);
      } else {
        end_of_block(block);
      }
      return;
    case Phase::targets:
      return do_targets(block);
    case Phase::polls:
      return do_polls(block);
    case Phase::work:
      return work_over(block);
    case Phase::last_polls:
      return do_last_polls(block);
  }
}

void Run::begin_step(uint32_t block) {
  Block& b = at(block);
  const DeviceOp& op = b.frame.rank.ops[b.op];
  b.now = StepRecord{};
  b.now.rank = b.rank;
  b.now.block = b.block;
  b.now.source = op.source;
  b.now.kind = op.kind;
  b.now.round = b.round;
  b.now.before = b.last_record;
  b.now.begin = b.now.work = now();
  if (b.call == 0) {
    b.record = static_cast<uint32_t>(out_.records.size());
    out_.records.push_back(b.now);
  }
  b.target = 0;
  if (device::moves_data(op.kind)) {
    work_out(b);
    b.phase = Phase::polls;
    return do_polls(block);
  }
  b.phase = Phase::targets;
  do_targets(block);
}

void Run::work_out(Block& b) {
  const RankState& state = rank_of(b);
  const DeviceOp* ops = b.frame.rank.ops;
  state.work.of(b.frame, ops[b.op], b.call, b.work);
  const uint32_t copy = state.copies.copy_of(b.op);
  if (copy == JoinedCopies::kNoOp) return;
  Work more;
  state.work.of(b.frame, ops[copy], b.call, more);
  b.work.join(more);
}

/// The step is over: its record, and the next one.
void Run::finish(uint32_t block, double at_time) {
  Block& b = at(block);
  b.now.end = at_time;
  b.now.hops = b.hops;
  if (b.record != kNoRecord) out_.records[b.record] = b.now;
  b.last_record = b.record;
  ++b.op;
  b.phase = Phase::fetch;
  events_.push(at_time, EventKind::go_on, block);
}

void Run::end_of_block(uint32_t block) {
  Block& b = at(block);
  RankState& state = rank_of(b);
  ends_[b.call] = std::max(ends_[b.call], now());
  if (b.call == 0) {
    out_.hops = std::max(out_.hops, b.hops);
    if (b.last_record != kNoRecord &&
        (out_.final_record == kNoRecord ||
         out_.records[b.last_record].end >= out_.records[out_.final_record].end)) {
      out_.final_record = b.last_record;
    }
  }
  if (--state.running > 0) return;
  if (++state.call < calls_) launch(b.rank);
}

void Run::part_over(uint32_t part, Cause cause) {
  const Part p = in_flight_.parts.take(part);
  if (!p.is_block) return ports_.part_over(p);
  Block& b = at(p.owner);
  if (--b.open > 0) return;
  b.now.cause = cause;
  work_over(p.owner);
}

// ---- the loop ----

void Run::handle(const Event& e) {
  switch (e.kind()) {
    case EventKind::go_on:
      return go_on(e.what);
    case EventKind::part_over:
      return part_over(e.what, static_cast<Cause>(e.version));
    case EventKind::rate:
      if (const auto part = rates_.ended(e.what, e.version)) {
        const auto kind = static_cast<Shared>(e.what % kSharedKinds);
        const Cause cause = kind == Shared::memory ? Cause::block : Cause::link;
        const Part& p = in_flight_.parts[*part];
        if (p.lead == 0) return part_over(*part, cause);
        const bool is_long = now() - at(p.owner).now.work > p.lead;
        events_.push(now() + p.lead, EventKind::part_over, *part,
                     static_cast<uint32_t>(is_long ? cause : Cause::block));
      }
      return;
    case EventKind::begun:
      return arrive(e.what, true);
    case EventKind::come:
      return arrive(e.what, false);
    case EventKind::served:
      return ports_.served(e.what);
    case EventKind::copy_begins:
      return ports_.copy_begins(e.what);
  }
}

std::optional<Timeline> Run::run(const Call& call, Diagnostics& diagnostics) {
  build(call);
  for (uint32_t r = 0; r < ranks_.size(); ++r) launch(r);
  while (!events_.empty()) {
    handle(events_.next());
    if (events_.count() < kMaxEvents) continue;
    diagnostics.error(
        "too-large", {},
        fmt::format("the call has more than {} steps and messages, too many to predict",
                    kMaxEvents / 4));
    return std::nullopt;
  }
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].blocks == 0 || ranks_[r].call == calls_) continue;
    diagnostics.error("plan-hangs", {},
                      fmt::format("rank {} does not get to the end of call {}: its thread blocks "
                                  "wait for signals or packets that do not come",
                                  r, ranks_[r].call));
    return std::nullopt;
  }
  packets_.add_arrows(out_.records, out_.arrows);
  out_.loads = rates_.loads();
  out_.alone_ns = ends_.front();
  // A rank that hears nothing back gets ahead in the first calls, as far as its credits let it.
  const uint32_t middle = calls_ / 2, last = calls_ - 1;
  out_.events = events_.count();
  out_.back_to_back_ns =
      middle < last ? (ends_[last] - ends_[middle]) / (last - middle) : out_.alone_ns;
  return std::move(out_);
}

std::optional<Timeline> run_timeline(const Program& program, const DeviceProgram& device,
                                     const Call& call, const Machine& machine, uint32_t calls,
                                     Diagnostics& diagnostics, Detail detail) {
  return Run(program, device, machine, calls, detail).run(call, diagnostics);
}

}  // namespace mscclc::cost
