// Ports in virtual time: proxies that serve requests, copy engines, messages between nodes.
#include <algorithm>

#include "executor/cost/timeline_run.h"

namespace mscclc::cost {
namespace {

/// Nanoseconds that the proxy is busy with a request: a put (`bytes` of it) or a signal, to this
/// node or another. Where it sends by itself (sockets), that is for the message's bytes, too;
/// others send what is long.
double proxy_takes(const Machine& machine, bool far_put, uint64_t bytes) {
  if (!far_put) return ns(machine.proxy_request_ns);
  const double request = ns(machine.nic_request_ns);
  if (bytes >= machine.nic_long_bytes) return request;
  return request + ns(bytes) * 1e3 / ns(machine.nic_proxy_mb_per_s);
}

}  // namespace

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
  m.request = true;
  m.peer = end.peer;
  if (put != nullptr) {
    m.bytes = put->bytes;
    m.in_gpus = put->in_gpus;
    if (put->packets) m.slots.push_back(put->slot);
    ++state.ports[channel].puts;
  }
  const uint32_t message = messages_.put(std::move(m));
  const double seen = now_ + ns(machine_.proxy_post_ns);
  const bool far = put != nullptr && !machine_.same_node(b.rank, end.peer);
  state.proxy_free =
      std::max(state.proxy_free, seen) + proxy_takes(machine_, far, far ? put->bytes : 0);
  push(state.proxy_free, EventKind::served, message);
}

void Run::served(uint32_t message) {
  const Message& m = messages_[message];
  RankState& state = ranks_[m.rank];
  state.ports[m.channel].items.push_back({m.signal, false, message});
  if (m.signal) return port_moves(m.rank, m.channel);
  const auto transfer = static_cast<uint32_t>(transfers_.size());
  const bool near = machine_.same_node(m.rank, m.peer);
  transfers_.push_back({message, 0, 0, near ? m.rank : kNone});
  if (!near) {
    if (lanes_.join(transfer, m.rank, m.peer)) begin_transfer(transfer);
    return;
  }
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
  const auto load = [&](uint32_t rank, Shared kind, double times = 1) {
    const uint32_t shared = shared_index(rank, kind);
    if (m.record != kNoRecord) out_.loads[shared] += m.bytes;
    ++t.open;
    ++t.on_links;
    add_load(shared, times * bytes, parts_.put({transfer, false, true}));
  };
  double own = 0;
  if (t.engine_of != kNone) {
    load(m.rank, Shared::engine);
    load(m.rank, Shared::egress);
    load(m.peer, Shared::ingress);
  } else {
    own = m.bytes < machine_.nic_long_bytes
              ? bytes * 1e3 / ns(machine_.nic_short_mb_per_s)
              : ns(machine_.nic_long_ns) + bytes * 1e3 / ns(machine_.nic_long_mb_per_s);
    load(m.rank, Shared::nic_out);
    load(m.peer, Shared::nic_in);
    const bool staged = m.in_gpus && machine_.scratch_on_host();
    const uint64_t both = staged ? machine_.nic_gpu_both_mb_per_s : machine_.nic_both_mb_per_s;
    if (both < 2 * machine_.nic_mb_per_s) {
      const double times = ns(machine_.nic_both_mb_per_s) / ns(both);
      load(m.rank, Shared::nic_both, times);
      load(m.peer, Shared::nic_both, times);
    }
  }
  // Where the port alone takes as long, that is seen to.
  if (own * ns(machine_.nic_mb_per_s) <= bytes * 1e3) return;
  ++t.open;
  push(now_ + own, EventKind::part_over, parts_.put({transfer, false, false}));
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
    m.request = false;
    const Channel& end = program_.ranks[rank].channels[channel];
    if (end.partner == kNone) continue;
    m.rank = end.peer;
    m.channel = end.partner;
    push(now_ + latency(rank, end.peer), EventKind::come, messages_.put(std::move(m)));
  }
}

}  // namespace mscclc::cost
