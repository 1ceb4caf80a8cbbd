#include "executor/cost/timeline_ports.h"

#include <algorithm>

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

Lanes::Lanes(const Program& program) : numbers_(program.ranks.size()) {
  std::vector<uint32_t> to(program.ranks.size());
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    std::ranges::fill(to, kNone);
    for (const Channel& channel : program.ranks[r].channels) {
      const bool port = channel.kind == ChannelKind::port;
      if (port && to[channel.peer] == kNone) {
        to[channel.peer] = static_cast<uint32_t>(lanes_.size());
        lanes_.emplace_back();
      }
      numbers_[r].push_back(port ? to[channel.peer] : kNone);
    }
  }
}

Ports::Ports(const Program& program, const Machine& machine, Events& events, Rates& rates,
             InFlight& in_flight)
    : program_(program),
      machine_(machine),
      events_(events),
      rates_(rates),
      in_flight_(in_flight),
      ranks_(program.ranks.size()),
      lanes_(program) {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].ports.resize(program.ranks[r].channels.size());
  }
}

void Ports::post(uint32_t rank, const Request* put, uint32_t channel, uint32_t record,
                 uint32_t hops) {
  OfRank& state = ranks_[rank];
  const Channel& end = program_.ranks[rank].channels[channel];
  Message m;
  m.record = record;
  m.sent = events_.now();
  m.hops = hops + 1;
  m.rank = rank;
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
  const uint32_t message = in_flight_.messages.put(std::move(m));
  const double seen = events_.now() + ns(machine_.proxy_post_ns);
  const bool far = put != nullptr && !machine_.same_node(rank, end.peer);
  state.proxy_free =
      std::max(state.proxy_free, seen) + proxy_takes(machine_, far, far ? put->bytes : 0);
  const bool first = state.asked.empty();
  state.asked.push({state.proxy_free, events_.announce(), message});
  if (first) push_first(state);
}

/// Requests are served in order: there need not be events of all of them.
void Ports::push_first(OfRank& state) {
  const Asked& first = state.asked.front();
  events_.push_announced(first.served, first.announced, EventKind::served, first.message);
}

void Ports::served(uint32_t message) {
  const Message& m = in_flight_.messages[message];
  OfRank& state = ranks_[m.rank];
  state.asked.take();
  if (!state.asked.empty()) push_first(state);
  state.ports[m.channel].items.push({m.signal, false, message});
  if (m.signal) return send_signals(m.rank, m.channel);
  const auto transfer = static_cast<uint32_t>(transfers_.size());
  const bool near = machine_.same_node(m.rank, m.peer);
  transfers_.push_back({message, 0, 0, near ? m.rank : kNone});
  if (!near) {
    if (lanes_.join(transfer, m.rank, m.channel)) begin(transfer);
    return;
  }
  state.copies.push(transfer);
  start_copy(m.rank);
}

void Ports::copy_begins(uint32_t rank) { begin(ranks_[rank].copies.take()); }

void Ports::part_over(const Part& part) {
  Transfer& t = transfers_[part.owner];
  if (part.on_link && --t.on_links == 0 && t.engine_of == kNone) {
    // All its bytes have gone: the next one of its lane begins.
    const Message& m = in_flight_.messages[t.message];
    const uint32_t next = lanes_.next(m.rank, m.channel);
    if (next != kNone) begin(next);
  }
  if (--t.open == 0) over(part.owner);
}

bool Ports::has_read(uint32_t rank, uint32_t channel, uint32_t block) {
  Port& port = ranks_[rank].ports[channel];
  if (port.puts > 0) port.flushing.push_back(block);
  return port.puts == 0;
}

void Ports::start_copy(uint32_t rank) {
  OfRank& state = ranks_[rank];
  if (state.copying || state.copies.empty()) return;
  state.copying = true;
  events_.push(events_.now() + ns(machine_.copy_engine_start_ns), EventKind::copy_begins, rank);
}

void Ports::begin(uint32_t transfer) {
  Transfer& t = transfers_[transfer];
  const Message& m = in_flight_.messages[t.message];
  const auto bytes = static_cast<double>(m.bytes);
  const auto load = [&](uint32_t rank, Shared kind, double times = 1) {
    const uint32_t shared = shared_index(rank, kind);
    if (m.record != kNoRecord) rates_.count(shared, m.bytes);
    ++t.open;
    ++t.on_links;
    rates_.add(shared, times * bytes, in_flight_.parts.put({transfer, false, true}));
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
  events_.push(events_.now() + own, EventKind::part_over,
               in_flight_.parts.put({transfer, false, false}));
}

void Ports::over(uint32_t transfer) {
  const Transfer t = transfers_[transfer];
  // Of packets there are two more events.
  const bool packets = !in_flight_.messages[t.message].slots.empty();
  const Message m = packets ? in_flight_.messages[t.message] : in_flight_.messages.take(t.message);
  OfRank& state = ranks_[m.rank];
  if (t.engine_of != kNone) {
    state.copying = false;
    start_copy(m.rank);
  }
  Port& port = state.ports[m.channel];
  const auto is_it = [&](const Port::Item& item) {
    return item.message == t.message && !item.signal && !item.done;
  };
  std::find_if(port.items.begin(), port.items.end(), is_it)->done = true;
  --port.puts;
  if (packets) {
    const double come = events_.now() + latency(machine_, m.rank, m.peer);
    events_.push(come, EventKind::begun, t.message);
    events_.push(come, EventKind::come, t.message);
  }
  send_signals(m.rank, m.channel);
  const std::vector<uint32_t> flushing = std::move(port.flushing);
  port.flushing.clear();
  for (const uint32_t block : flushing) events_.push(events_.now(), EventKind::go_on, block);
}

/// Signals that nothing stands ahead of leave.
void Ports::send_signals(uint32_t rank, uint32_t channel) {
  Fifo<Port::Item>& items = ranks_[rank].ports[channel].items;
  while (!items.empty() && (items.front().signal || items.front().done)) {
    const Port::Item item = items.take();
    if (!item.signal) continue;
    Message m = in_flight_.messages.take(item.message);
    m.request = false;
    const Channel& end = program_.ranks[rank].channels[channel];
    if (end.partner == kNone) continue;
    m.rank = end.peer;
    m.channel = end.partner;
    events_.push(events_.now() + latency(machine_, rank, end.peer), EventKind::come,
                 in_flight_.messages.put(std::move(m)));
  }
}

}  // namespace mscclc::cost
