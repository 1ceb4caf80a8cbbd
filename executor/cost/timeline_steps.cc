// What a block's step does in virtual time: it synchronises, or polls packets and moves data.
#include <algorithm>

#include "executor/cost/timeline_run.h"

namespace mscclc::cost {

using device::DeviceOp;
using device::StepKind;

// ---- steps that synchronise ----

/// Takes one; false: it has to wait.
bool Run::take(uint32_t block, Count& count) {
  Block& b = at(block);
  if (!count.come()) {
    count.waiting.push(block);
    return false;
  }
  const From from = count.from.take();
  b.hops = std::max(b.hops, from.hops);
  if (detail_ == Detail::arrows && b.record != kNoRecord && from.record != kNoRecord) {
    out_.arrows.push_back({from.record, b.record, false, from.sent, from.came});
  }
  if (now() > b.now.work) {
    b.now.waited = from.record;
    b.now.waited_sent = from.sent;
    b.now.work = now();
  }
  return true;
}

void Run::give(Count& count, const From& from) {
  count.from.push({from.record, from.hops, from.sent, now()});
  if (!count.waiting.empty()) events_.push(now(), EventKind::go_on, count.waiting.take());
}

void Run::send_signal(const Block& b, uint32_t channel, double when) {
  const Channel& end = program_.ranks[b.rank].channels[channel];
  if (end.partner == kNone) return;
  Message m;
  m.record = b.record;
  m.sent = when;
  m.hops = b.hops + 1;
  m.rank = end.peer;
  m.channel = end.partner;
  m.signal = true;
  events_.push(when + latency(machine_, b.rank, end.peer), EventKind::come,
               in_flight_.messages.put(std::move(m)));
}

void Run::do_targets(uint32_t block) {
  Block& b = at(block);
  const DeviceOp& op = b.frame.rank.ops[b.op];
  RankState& state = rank_of(b);
  const auto target = [&](uint32_t i) { return b.frame.rank.targets[op.first + i]; };
  double takes = 0;
  b.now.cause = Cause::sync;
  switch (op.kind) {
    case StepKind::wait:
      for (; b.target < op.count; ++b.target) {
        if (!take(block, state.ends[target(b.target)])) return;
      }
      takes = ns(machine_.step_flag_ns);
      break;
    case StepKind::acquire:
      for (; b.target < op.count; ++b.target) {
        if (!take(block, state.semaphores[target(b.target)])) return;
      }
      takes = ns(machine_.step_barrier_ns);
      break;
    case StepKind::signal: {
      takes = ns(machine_.step_flag_ns);
      if ((op.flags & device::kRelaxed) == 0) takes += ns(machine_.step_fence_ns);
      const bool by_port = (op.flags & device::kPosts) != 0;
      if (by_port) takes = 0;
      finish(block, now() + takes);
      for (uint32_t i = 0; i < op.count; ++i) {
        if (by_port) {
          ports_.post(b.rank, nullptr, target(i), b.record, b.hops);
        } else {
          send_signal(b, target(i), now() + takes);
        }
      }
      return;
    }
    case StepKind::release:
      takes = ns(machine_.step_flag_ns);
      finish(block, now() + takes);
      for (uint32_t i = 0; i < op.count; ++i) {
        give(state.semaphores[target(i)], {b.record, b.hops, now()});
      }
      return;
    case StepKind::await:  // raised in time
    case StepKind::notify:
      takes = ns(machine_.step_flag_ns);
      break;
    case StepKind::flush:
      return flush(block);
    case StepKind::barrier:
      return meet(block);
    default:  // sync
      takes = ns(machine_.step_sync_ns);
      break;
  }
  finish(block, now() + takes);
}

void Run::meet(uint32_t block) {
  Block& b = at(block);
  const uint32_t index = b.frame.rank.targets[b.frame.rank.ops[b.op].first];
  BarrierState& barrier = rank_of(b).barriers[index];
  barrier.hops = std::max(barrier.hops, b.hops);
  barrier.waiting.push_back(block);
  if (++barrier.arrived < device_.ranks[b.rank].barriers[index].blocks.size()) return;
  if (detail_ == Detail::arrows && b.record != kNoRecord) {
    std::vector<uint32_t>& met = out_.meetings.emplace_back();
    for (const uint32_t other : barrier.waiting) met.push_back(at(other).record);
  }
  for (const uint32_t other : barrier.waiting) {
    Block& o = at(other);
    o.hops = barrier.hops;
    if (other != block && now() > o.now.begin) {
      o.now.waited = b.last_record;
      o.now.waited_sent = o.now.work = now();
    }
    finish(other, now() + ns(machine_.step_barrier_ns));
  }
  barrier = {};
}

void Run::flush(uint32_t block) {
  Block& b = at(block);
  const DeviceOp& op = b.frame.rank.ops[b.op];
  b.now.cause = Cause::proxy;
  for (; b.target < op.count; ++b.target) {
    const uint32_t channel = b.frame.rank.targets[op.first + b.target];
    if (!ports_.has_read(b.rank, channel, block)) return;
  }
  if (now() > b.now.begin) b.now.done = now();
  finish(block, now() + ns(machine_.pcie_latency_ns));
}

// ---- steps that move data ----

/// A message for all slots that are equally far: packets for the rank itself have no way to go.
void Run::send_packets(const Block& b, double when, EventKind kind) {
  const auto way_to = [&](const PacketRange& slot) { return latency(machine_, b.rank, slot.rank); };
  for (auto first = b.work.writes.begin(); first != b.work.writes.end();) {
    const double way = way_to(*first);
    const auto last = std::find_if(first, b.work.writes.end(),
                                   [&](const PacketRange& slot) { return way_to(slot) != way; });
    Message m;
    m.record = b.record;
    m.sent = when;
    m.hops = b.hops + 1;
    m.rank = b.rank;
    m.slots.assign(first, last);
    events_.push(when + way, kind, in_flight_.messages.put(std::move(m)));
    first = last;
  }
}

void Run::do_polls(uint32_t block) {
  Block& b = at(block);
  for (; b.target < b.work.reads.size(); ++b.target) {
    const PacketRange& read = b.work.reads[b.target];
    Arrivals& arrivals = ranks_[read.rank].begun[read.buffer];
    if (!arrivals.has(read.range)) return arrivals.wait(read.range, block);
  }
  do_work(block);
}

void Run::do_work(uint32_t block) {
  Block& b = at(block);
  b.phase = Phase::work;
  b.now.work = now();
  b.open = 1;
  b.now.bytes = b.work.stores;
  if (detail_ == Detail::arrows && b.record != kNoRecord) {
    for (const PacketRange& read : b.work.reads) packets_.read(b.record, read);
  }
  const double looked = std::min(now() - b.now.begin, b.work.read_ns);
  const double step = ns(machine_.step_step_ns);
  double fetched = b.work.fetches ? 2 * ns(machine_.link_latency_ns()) : 0;
  if (b.work.from_host) fetched += ns(machine_.pcie_latency_ns);
  if (b.work.at_switch) fetched += ns(machine_.switch_latency_ns);
  const double sends_end = rates_.last_end(shared_index(b.rank, Shared::egress));
  const double busy = std::min(b.work.busy_ns, sends_end - now());
  // What goes to other GPUs has to be loaded first.
  const auto leads = [&](const Load& load) {
    const auto kind = static_cast<Shared>(load.shared % kSharedKinds);
    const bool is_link = kind == Shared::egress || kind == Shared::ingress;
    return is_link && b.work.stores > 0 && !b.work.fetches;
  };
  for (const Load& load : b.work.loads) {
    if (b.call == 0) rates_.count(load.shared, load.bytes);
    ++b.open;
    const double lead = leads(load) ? step + b.work.first_ns - looked : 0;
    rates_.add(load.shared, static_cast<double>(load.bytes),
               in_flight_.parts.put({block, true, false, std::max(0.0, lead)}));
  }
  // The first packets leave before the last.
  send_packets(b, now() + step + b.work.first_ns - looked, EventKind::begun);
  events_.push(now() + step + b.work.block_ns + busy - looked + fetched, EventKind::part_over,
               in_flight_.parts.put({block, true, false}), static_cast<uint32_t>(Cause::block));
}

void Run::work_over(uint32_t block) {
  Block& b = at(block);
  b.now.done = now();
  b.phase = Phase::last_polls;
  b.target = 0;
  do_last_polls(block);
}

void Run::do_last_polls(uint32_t block) {
  Block& b = at(block);
  for (; b.target < b.work.reads.size(); ++b.target) {
    const PacketRange& read = b.work.reads[b.target];
    Arrivals& arrivals = ranks_[read.rank].come[read.buffer];
    if (!arrivals.has(read.range)) return arrivals.wait(read.range, block);
  }
  b.now.arrived = now();
  if (b.record != kNoRecord) {
    for (const PacketRange& read : b.work.reads) {
      b.hops = std::max(b.hops, ranks_[read.rank].hops[read.buffer].most(read.range));
    }
  }
  const double end = now() > b.now.done ? now() + b.work.tail_ns : now();
  finish(block, end);
  send_packets(b, end, EventKind::come);
  for (const Request& request : b.work.requests)
    ports_.post(b.rank, &request, request.channel, b.record, b.hops);
}

void Run::arrive(uint32_t message, bool begun) {
  // What has come is forgotten, except for requests, which proxies look at again.
  auto& messages = in_flight_.messages;
  const Message m = messages[message].request ? messages[message] : messages.take(message);
  if (m.signal) return give(ranks_[m.rank].ends[m.channel], {m.record, m.hops, m.sent});
  for (const PacketRange& slot : m.slots) {
    if (detail_ == Detail::arrows && m.record != kNoRecord && !begun) {
      packets_.came(m.record, slot, m.sent, now());
    }
    if (m.record != kNoRecord && !begun) {
      ranks_[slot.rank].hops[slot.buffer].came(slot.range, m.hops);
    }
    woken_.clear();
    RankState& state = ranks_[slot.rank];
    (begun ? state.begun : state.come)[slot.buffer].add(slot.range, woken_);
    for (const uint32_t block : std::vector<uint32_t>(woken_)) {
      Block& b = at(block);
      (begun ? b.now.waited : b.now.last) = m.record;
      (begun ? b.now.waited_sent : b.now.last_sent) = m.sent;
      events_.push(now(), EventKind::go_on, block);
    }
  }
}

}  // namespace mscclc::cost
