#include "executor/cost/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <queue>

#include "executor/cost/arrivals.h"
#include "executor/cost/shared_rate.h"
#include "executor/cost/work.h"

namespace mscclc::cost {
namespace {

using device::DeviceOp;
using device::StepKind;

double ns(uint64_t n) { return static_cast<double>(n); }

enum class EventKind : uint8_t {
  go_on,        ///< block: its step or wait is over
  part_over,    ///< transfer: one of what it waits for
  rate,         ///< shared: a transfer may have ended
  begun,        ///< message: the first packets come
  come,         ///< message: all packets, or a signal
  served,       ///< message: the proxy has done a request
  copy_begins,  ///< rank: its copy engine
};

struct Event {
  double at;
  uint64_t order;
  EventKind kind;
  uint32_t what;
  uint64_t version;
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

/// Something on its way: packets, a signal, a request to a proxy.
struct Message {
  uint32_t record = kNoRecord;
  double sent = 0;
  uint32_t hops = 0;
  uint32_t rank = 0;     ///< packets and signals: where they come to; requests: whose proxy
  uint32_t channel = 0;  ///< signals: the end there; requests: this rank's
  bool signal = false;
  std::vector<PacketRange> slots;
  uint64_t bytes = 0;
  uint32_t peer = 0;
};

/// By whom something has come.
struct From {
  uint32_t record = kNoRecord;
  uint32_t hops = 0;
  double sent = 0;
};

/// What has come at an end or a semaphore, and who waits.
struct Count {
  uint64_t come = 0;
  std::deque<From> from;  ///< of those not yet taken
  std::deque<uint32_t> waiting;
};

struct BarrierState {
  uint32_t arrived = 0;
  uint32_t hops = 0;
  std::vector<uint32_t> waiting;
};

/// A port channel's requests that are not done.
struct Port {
  struct Item {
    bool signal = false, done = false;
    uint32_t message = 0;
  };
  std::deque<Item> items;
  uint32_t puts = 0;
  std::vector<uint32_t> flushing;
};

enum class Phase : uint8_t { fetch, targets, polls, work, last_polls };

struct Block {
  uint32_t rank = 0, block = 0;
  uint32_t op = 0, end = 0;
  uint32_t body = 0, body_end = 0;  ///< of the pipeline at hand; body_end 0: none
  uint64_t rounds_left = 0;
  uint32_t round = 0;
  device::Frame frame;
  uint64_t call = 0;
  Phase phase = Phase::fetch;
  uint32_t target = 0;
  uint32_t open = 0;    ///< parts of its work that are not over
  bool stored = false;  ///< at other GPUs, since the last fence
  uint32_t hops = 0;
  uint32_t record = kNoRecord;       ///< of its step, in the first call
  uint32_t last_record = kNoRecord;  ///< of the one before
  uint32_t messages = 0;             ///< first of the packets that its step sends
  StepRecord now;
  Work work;
};

/// A copy, or a message between nodes.
struct Transfer {
  uint32_t message;
  uint32_t open;
  uint32_t engine_of;  ///< the rank whose copy engine does it, or kNone
};

class Run {
 public:
  Run(const Program& program, const DeviceProgram& device, const Machine& machine, uint32_t calls)
      : program_(program), device_(device), machine_(machine), calls_(calls) {}
  std::optional<Timeline> run(Diagnostics& diagnostics);

 private:
  struct RankState {
    explicit RankState(WorkOut out) : work(out) {}
    std::vector<Count> ends, semaphores;
    std::vector<Port> ports;
    std::vector<BarrierState> barriers;
    std::vector<Arrivals> begun, come;  ///< by buffer
    uint32_t first_block = 0, blocks = 0, running = 0;
    uint64_t call = 0;
    double proxy_free = 0;
    std::deque<uint32_t> copies;  ///< transfers that wait for the copy engine
    bool copying = false;
    double end = 0;
    WorkOut work;
  };

  void build();
  void launch(uint32_t rank);
  void push(double at, EventKind kind, uint32_t what, uint64_t version = 0) {
    events_.push({at, order_++, kind, what, version});
  }
  void handle(const Event& e);

  // Blocks.
  void go_on(uint32_t block);
  bool fetch(Block& b);
  void begin_step(uint32_t block);
  void finish(uint32_t block, double at);
  void end_of_block(uint32_t block);
  void do_targets(uint32_t block);
  bool take(uint32_t block, Count& count);
  void send_signal(Block& b, uint32_t channel, double at);
  void do_polls(uint32_t block);
  void do_work(uint32_t block);
  void work_over(uint32_t block);
  void do_last_polls(uint32_t block);
  void meet(uint32_t block);
  void flush(uint32_t block);
  void step_takes(uint32_t block, uint64_t cost) { push(now_ + ns(cost), EventKind::go_on, block); }

  // Shared rates.
  uint32_t new_part(uint32_t block_or_transfer, bool is_block);
  void add_load(uint32_t shared, double bytes, uint32_t part);
  void watch(uint32_t shared);
  void rate_event(uint32_t shared, uint64_t version);
  void part_over(uint32_t part, Cause cause);

  // Messages.
  uint32_t new_message(Message m) {
    messages_.push_back(std::move(m));
    return static_cast<uint32_t>(messages_.size() - 1);
  }
  double latency(uint32_t from, uint32_t to) const;
  bool same_node(uint32_t a, uint32_t b) const { return a / machine_.gpus == b / machine_.gpus; }
  void arrive(uint32_t message, bool begun);
  void give(Count& count, const From& from);

  // Proxies.
  void post(Block& b, const Request* put, uint32_t channel);
  void served(uint32_t message);
  void start_copy(uint32_t rank);
  void begin_transfer(uint32_t transfer);
  void transfer_over(uint32_t transfer);
  void port_moves(uint32_t rank, uint32_t channel);

  Block& at(uint32_t block) { return blocks_[block]; }
  RankState& rank_of(const Block& b) { return ranks_[b.rank]; }

  const Program& program_;
  const DeviceProgram& device_;
  const Machine& machine_;
  const uint32_t calls_;

  double now_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<RankState> ranks_;
  std::vector<Block> blocks_;
  std::vector<SharedRate> shared_;
  std::vector<uint64_t> versions_;
  struct Part {
    uint32_t owner;
    bool is_block;
  };
  std::vector<Part> parts_;
  std::vector<uint32_t> free_parts_;
  std::deque<Message> messages_;
  std::vector<Transfer> transfers_;
  std::vector<double> ends_;  ///< by call: when the last rank ended it
  std::vector<uint32_t> woken_;
  Timeline out_;
};

void Run::build() {
  const auto ranks = static_cast<uint32_t>(program_.ranks.size());
  const double link = ns(machine_.link_mb_per_s()) / 1e3;
  const auto rate = [&](Shared kind) {
    switch (kind) {
      case Shared::egress:
      case Shared::ingress:
        return link;
      case Shared::memory:
        return ns(machine_.memory_mb_per_s) / 1e3;
      case Shared::nic_out:
      case Shared::nic_in:
        return ns(machine_.nic_mb_per_s) / 1e3;
      case Shared::nic_both:
        return ns(machine_.nic_both_mb_per_s) / 1e3;
      case Shared::engine:
        return ns(machine_.copy_engine_mb_per_s) / 1e3;
    }
    return link;
  };
  for (uint32_t r = 0; r < ranks; ++r) {
    for (uint32_t k = 0; k < kSharedKinds; ++k) {
      shared_.emplace_back(rate(static_cast<Shared>(k)));
    }
  }
  versions_.assign(shared_.size(), 0);
  out_.loads.assign(shared_.size(), 0);
  ends_.assign(calls_, 0);
  ranks_.reserve(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    const RankProgram& lowered = device_.ranks[r];
    const Rank& rank = program_.ranks[r];
    RankState state(WorkOut(program_, lowered, r, machine_));
    state.ends.resize(rank.channels.size());
    for (size_t c = 0; c < rank.channels.size(); ++c) {
      state.ends[c].come = rank.channels[c].credits;
      state.ends[c].from.resize(rank.channels[c].credits);
    }
    state.ports.resize(rank.channels.size());
    state.semaphores.resize(rank.semaphores.size());
    for (size_t s = 0; s < rank.semaphores.size(); ++s) {
      state.semaphores[s].come = rank.semaphores[s].initial;
      state.semaphores[s].from.resize(rank.semaphores[s].initial);
    }
    state.barriers.resize(lowered.barriers.size());
    state.begun.resize(lowered.buffers.size());
    state.come.resize(lowered.buffers.size());
    state.first_block = static_cast<uint32_t>(blocks_.size());
    state.blocks = static_cast<uint32_t>(lowered.block_begin.size()) - 1;
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

void Run::launch(uint32_t rank) {
  RankState& state = ranks_[rank];
  const RankProgram& lowered = device_.ranks[rank];
  state.running = state.blocks;
  const double begin =
      now_ + ns(machine_.launch_call_ns) + ns(machine_.launch_block_ns) * state.blocks;
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
    b.stored = false;
    b.hops = 0;
    b.record = b.last_record = kNoRecord;
    push(begin, EventKind::go_on, state.first_block + i);
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
  b.now.round = b.round;
  b.now.before = b.last_record;
  b.now.begin = b.now.work = now_;
  if (b.call == 0) {
    b.record = static_cast<uint32_t>(out_.records.size());
    out_.records.push_back(b.now);
  }
  b.target = 0;
  if (device::moves_data(op.kind)) {
    rank_of(b).work.of(b.frame, op, b.call, b.work);
    b.phase = Phase::polls;
    return do_polls(block);
  }
  b.phase = Phase::targets;
  do_targets(block);
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
  push(at_time, EventKind::go_on, block);
}

void Run::end_of_block(uint32_t block) {
  Block& b = at(block);
  RankState& state = rank_of(b);
  ends_[b.call] = std::max(ends_[b.call], now_);
  if (b.call == 0) {
    out_.rounds = std::max(out_.rounds, b.hops);
    if (b.last_record != kNoRecord &&
        (out_.final_record == kNoRecord ||
         out_.records[b.last_record].end >= out_.records[out_.final_record].end)) {
      out_.final_record = b.last_record;
    }
  }
  if (--state.running > 0) return;
  if (++state.call < calls_) launch(b.rank);
}

// ---- steps that synchronise ----

/// Takes one; false: it has to wait.
bool Run::take(uint32_t block, Count& count) {
  Block& b = at(block);
  if (count.come == 0) {
    count.waiting.push_back(block);
    return false;
  }
  --count.come;
  const From from = count.from.front();
  count.from.pop_front();
  b.hops = std::max(b.hops, from.hops);
  if (now_ > b.now.work) {
    b.now.waited = from.record;
    b.now.waited_sent = from.sent;
    b.now.work = now_;
  }
  return true;
}

void Run::give(Count& count, const From& from) {
  ++count.come;
  count.from.push_back(from);
  if (count.waiting.empty()) return;
  const uint32_t block = count.waiting.front();
  count.waiting.pop_front();
  push(now_, EventKind::go_on, block);
}

void Run::send_signal(Block& b, uint32_t channel, double when) {
  const Channel& end = program_.ranks[b.rank].channels[channel];
  if (end.partner == kNone) return;
  Message m;
  m.record = b.record;
  m.sent = when;
  m.hops = b.hops + 1;
  m.rank = end.peer;
  m.channel = end.partner;
  m.signal = true;
  push(when + latency(b.rank, end.peer), EventKind::come, new_message(std::move(m)));
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
      if ((op.flags & device::kRelaxed) == 0 && b.stored) {
        takes += ns(machine_.step_fence_ns);
        b.stored = false;
      }
      const bool by_port = (op.flags & device::kPosts) != 0;
      if (by_port) takes = 0;
      finish(block, now_ + takes);
      for (uint32_t i = 0; i < op.count; ++i) {
        if (by_port) {
          post(b, nullptr, target(i));
        } else {
          send_signal(b, target(i), now_ + takes);
        }
      }
      return;
    }
    case StepKind::release:
      takes = ns(machine_.step_flag_ns);
      finish(block, now_ + takes);
      for (uint32_t i = 0; i < op.count; ++i) {
        give(state.semaphores[target(i)], {b.record, b.hops, now_ + takes});
      }
      return;
    case StepKind::flush:
      return flush(block);
    case StepKind::barrier:
      return meet(block);
    default:  // sync
      takes = ns(machine_.step_sync_ns);
      break;
  }
  finish(block, now_ + takes);
}

void Run::meet(uint32_t block) {
  Block& b = at(block);
  const uint32_t index = b.frame.rank.targets[b.frame.rank.ops[b.op].first];
  BarrierState& barrier = rank_of(b).barriers[index];
  barrier.hops = std::max(barrier.hops, b.hops);
  barrier.waiting.push_back(block);
  if (++barrier.arrived < device_.ranks[b.rank].barriers[index].blocks.size()) return;
  for (const uint32_t other : barrier.waiting) {
    Block& o = at(other);
    o.hops = barrier.hops;
    if (other != block && now_ > o.now.begin) {
      o.now.waited = b.last_record;
      o.now.waited_sent = o.now.work = now_;
    }
    finish(other, now_ + ns(machine_.step_barrier_ns));
  }
  barrier = {};
}

void Run::flush(uint32_t block) {
  Block& b = at(block);
  const DeviceOp& op = b.frame.rank.ops[b.op];
  b.now.cause = Cause::proxy;
  for (; b.target < op.count; ++b.target) {
    Port& port = rank_of(b).ports[b.frame.rank.targets[op.first + b.target]];
    if (port.puts == 0) continue;
    port.flushing.push_back(block);
    return;
  }
  if (now_ > b.now.begin) b.now.done = now_;
  finish(block, now_ + ns(machine_.pcie_latency_ns));
}

// ---- steps that move data ----

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
  b.now.work = now_;
  b.open = 1;
  const double step = ns(machine_.step_step_ns);
  double fetched = b.work.fetches ? 2 * ns(machine_.link_latency_ns()) : 0;
  if (b.work.at_switch) fetched += ns(machine_.switch_latency_ns);
  for (const Load& load : b.work.loads) {
    if (b.call == 0) out_.loads[load.shared] += load.bytes;
    ++b.open;
    add_load(load.shared, static_cast<double>(load.bytes), new_part(block, true));
  }
  b.stored |= b.work.remote;
  // The first packets leave before the last.
  if (!b.work.writes.empty()) {
    Message m;
    m.record = b.record;
    m.hops = b.hops + 1;
    m.rank = b.rank;
    m.slots = b.work.writes;
    const double leave = now_ + step + b.work.first_ns;
    m.sent = leave;
    b.messages = new_message(std::move(m));
    push(leave + latency(b.rank, b.work.writes.front().rank), EventKind::begun, b.messages);
  }
  push(now_ + step + b.work.block_ns + fetched, EventKind::part_over, new_part(block, true));
}

void Run::work_over(uint32_t block) {
  Block& b = at(block);
  b.now.done = now_;
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
  b.now.arrived = now_;
  const double end = now_ > b.now.done ? now_ + b.work.tail_ns : now_;
  finish(block, end);
  if (!b.work.writes.empty()) {
    Message m = messages_[b.messages];
    m.sent = end;
    m.hops = b.hops + 1;
    const double come = end + latency(b.rank, m.slots.front().rank);
    push(come, EventKind::come, new_message(std::move(m)));
  }
  for (const Request& request : b.work.requests) post(b, &request, request.channel);
}

void Run::arrive(uint32_t message, bool begun) {
  const Message m = messages_[message];
  if (m.signal) return give(ranks_[m.rank].ends[m.channel], {m.record, m.hops, m.sent});
  for (const PacketRange& slot : m.slots) {
    woken_.clear();
    RankState& state = ranks_[slot.rank];
    (begun ? state.begun : state.come)[slot.buffer].add(slot.range, woken_);
    for (const uint32_t block : std::vector<uint32_t>(woken_)) {
      Block& b = at(block);
      b.hops = std::max(b.hops, m.hops);
      (begun ? b.now.waited : b.now.last) = m.record;
      (begun ? b.now.waited_sent : b.now.last_sent) = m.sent;
      push(now_, EventKind::go_on, block);
    }
  }
}

double Run::latency(uint32_t from, uint32_t to) const {
  if (from == to) return 0;
  return ns(same_node(from, to) ? machine_.link_latency_ns() : machine_.nic_latency_ns);
}

// ---- shared rates ----

uint32_t Run::new_part(uint32_t owner, bool is_block) {
  if (free_parts_.empty()) {
    parts_.push_back({owner, is_block});
    return static_cast<uint32_t>(parts_.size() - 1);
  }
  const uint32_t part = free_parts_.back();
  free_parts_.pop_back();
  parts_[part] = {owner, is_block};
  return part;
}

void Run::add_load(uint32_t shared, double bytes, uint32_t part) {
  shared_[shared].add(part, bytes, now_);
  watch(shared);
}

void Run::watch(uint32_t shared) {
  ++versions_[shared];
  if (shared_[shared].idle()) return;
  push(std::max(now_, shared_[shared].next_end()), EventKind::rate, shared, versions_[shared]);
}

void Run::rate_event(uint32_t shared, uint64_t version) {
  if (version != versions_[shared]) return;
  const uint32_t part = shared_[shared].pop(now_);
  watch(shared);
  const auto kind = static_cast<Shared>(shared % kSharedKinds);
  part_over(part, kind == Shared::memory ? Cause::block : Cause::link);
}

void Run::part_over(uint32_t part, Cause cause) {
  const Part p = parts_[part];
  free_parts_.push_back(part);
  if (!p.is_block) {
    if (--transfers_[p.owner].open == 0) transfer_over(p.owner);
    return;
  }
  Block& b = at(p.owner);
  if (--b.open > 0) return;
  b.now.cause = cause;
  work_over(p.owner);
}

// ---- proxies ----

/// A put, or (nullptr) a signal.
void Run::post(Block& b, const Request* put, uint32_t channel) {
  RankState& state = ranks_[b.rank];
  const Channel& end = program_.ranks[b.rank].channels[channel];
  Message m;
  m.record = b.record;
  m.sent = now_;
  m.hops = b.hops + 1;
  m.rank = b.rank;
  m.channel = channel;
  m.signal = put == nullptr;
  m.peer = end.peer;
  if (put != nullptr) {
    m.bytes = put->bytes;
    if (put->packets) m.slots.push_back(put->slot);
    ++state.ports[channel].puts;
  }
  const uint32_t message = new_message(std::move(m));
  const double seen = now_ + ns(machine_.proxy_post_ns);
  state.proxy_free = std::max(state.proxy_free, seen) + ns(machine_.proxy_request_ns);
  push(state.proxy_free, EventKind::served, message);
}

void Run::served(uint32_t message) {
  const Message& m = messages_[message];
  RankState& state = ranks_[m.rank];
  state.ports[m.channel].items.push_back({m.signal, false, message});
  if (m.signal) return port_moves(m.rank, m.channel);
  const auto transfer = static_cast<uint32_t>(transfers_.size());
  const bool near = same_node(m.rank, m.peer);
  transfers_.push_back({message, 0, near ? m.rank : kNone});
  if (!near) return begin_transfer(transfer);
  state.copies.push_back(transfer);
  start_copy(m.rank);
}

void Run::start_copy(uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.copying || state.copies.empty()) return;
  state.copying = true;
  push(now_ + ns(machine_.copy_engine_start_ns), EventKind::copy_begins, rank);
}

void Run::begin_transfer(uint32_t transfer) {
  Transfer& t = transfers_[transfer];
  const Message& m = messages_[t.message];
  const auto bytes = static_cast<double>(m.bytes);
  const auto load = [&](uint32_t rank, Shared kind) {
    const uint32_t shared = shared_index(rank, kind);
    if (m.record != kNoRecord) out_.loads[shared] += m.bytes;
    ++t.open;
    add_load(shared, bytes, new_part(transfer, false));
  };
  t.open = 1;
  double own = 0;
  if (t.engine_of != kNone) {
    load(m.rank, Shared::engine);
    load(m.rank, Shared::egress);
    load(m.peer, Shared::ingress);
  } else {
    own = bytes * 1e3 / ns(machine_.nic_message_mb_per_s);
    load(m.rank, Shared::nic_out);
    load(m.peer, Shared::nic_in);
    load(m.rank, Shared::nic_both);
    load(m.peer, Shared::nic_both);
  }
  push(now_ + own, EventKind::part_over, new_part(transfer, false));
}

void Run::transfer_over(uint32_t transfer) {
  const Transfer t = transfers_[transfer];
  const Message m = messages_[t.message];
  RankState& state = ranks_[m.rank];
  if (t.engine_of != kNone) {
    state.copying = false;
    start_copy(m.rank);
  }
  Port& port = state.ports[m.channel];
  for (Port::Item& item : port.items) {
    if (item.message == t.message) item.done = true;
  }
  --port.puts;
  if (!m.slots.empty()) {
    const double come = now_ + latency(m.rank, m.peer);
    push(come, EventKind::begun, t.message);
    push(come, EventKind::come, t.message);
  }
  port_moves(m.rank, m.channel);
  const std::vector<uint32_t> flushing = std::move(port.flushing);
  port.flushing.clear();
  for (const uint32_t block : flushing) push(now_, EventKind::go_on, block);
}

/// Signals that nothing stands ahead of leave.
void Run::port_moves(uint32_t rank, uint32_t channel) {
  std::deque<Port::Item>& items = ranks_[rank].ports[channel].items;
  while (!items.empty() && (items.front().signal || items.front().done)) {
    const Port::Item item = items.front();
    items.pop_front();
    if (!item.signal) continue;
    Message m = messages_[item.message];
    const Channel& end = program_.ranks[rank].channels[channel];
    if (end.partner == kNone) continue;
    m.rank = end.peer;
    m.channel = end.partner;
    push(now_ + latency(rank, end.peer), EventKind::come, new_message(std::move(m)));
  }
}

// ---- the loop ----

void Run::handle(const Event& e) {
  switch (e.kind) {
    case EventKind::go_on:
      return go_on(e.what);
    case EventKind::part_over:
      return part_over(e.what, Cause::block);
    case EventKind::rate:
      return rate_event(e.what, e.version);
    case EventKind::begun:
      return arrive(e.what, true);
    case EventKind::come:
      return arrive(e.what, false);
    case EventKind::served:
      return served(e.what);
    case EventKind::copy_begins: {
      RankState& state = ranks_[e.what];
      const uint32_t transfer = state.copies.front();
      state.copies.pop_front();
      return begin_transfer(transfer);
    }
  }
}

std::optional<Timeline> Run::run(Diagnostics& diagnostics) {
  build();
  for (uint32_t r = 0; r < ranks_.size(); ++r) launch(r);
  while (!events_.empty()) {
    const Event e = events_.top();
    events_.pop();
    now_ = e.at;
    handle(e);
  }
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].blocks == 0 || ranks_[r].call == calls_) continue;
    diagnostics.error("plan-hangs", {},
                      fmt::format("rank {} does not get to the end of call {}: its thread blocks "
                                  "wait for signals or packets that do not come",
                                  r, ranks_[r].call));
    return std::nullopt;
  }
  out_.alone_ns = ends_.front();
  out_.back_to_back_ns = calls_ > 1 ? (ends_.back() - ends_.front()) / (calls_ - 1) : out_.alone_ns;
  return std::move(out_);
}

}  // namespace

std::optional<Timeline> run_timeline(const Program& program, const DeviceProgram& device,
                                     const Machine& machine, uint32_t calls,
                                     Diagnostics& diagnostics) {
  return Run(program, device, machine, calls).run(diagnostics);
}

}  // namespace mscclc::cost
