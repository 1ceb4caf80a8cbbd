// Loading a plan: what the proxy does for its channels, and the lanes that it has to other ranks.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/communicator/call/beside.h"
#include "runtime/core/communicator/executable.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/core/device/links.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

bool Executable::State::goes_by_proxy(uint32_t channel) const {
  const Channel& c = plan->ranks[rank].channels[channel];
  return c.kind == ChannelKind::port || needs_stored_signals(c, group->links);
}

std::vector<device::ChannelEnd> Executable::State::channel_ends() const {
  std::vector<device::ChannelEnd> ends;
  const std::vector<Channel>& channels = plan->ranks[rank].channels;
  for (uint32_t c = 0; c < channels.size(); ++c) {
    const Channel& channel = channels[c];
    uint64_t* partner =
        channel.partner == kNone ? nullptr : connections[channel.peer].arrived(channel.partner);
    ends.push_back({connections[rank].arrived(c), partner, 0,
                    static_cast<uint64_t>(goes_by_proxy(c) ? 1 : 0)});
  }
  return ends;
}

bool Executable::State::proxy_sends_from(uint32_t from) const {
  const std::vector<Channel>& channels = plan->ranks[from].channels;
  return std::any_of(channels.begin(), channels.end(), [&](Channel c) {
    if (c.peer != rank) return false;
    c.peer = from;  // links are as seen from here
    return c.kind == ChannelKind::port || needs_stored_signals(c, group->links);
  });
}

LanePeer Executable::State::lane_peer(uint32_t peer) const {
  LanePeer to{.rank = peer, .link = group->links[peer], .failed = fail_group()};
  if (far_calls != nullptr) {
    to.noted = [weak = std::weak_ptr<Group>(group), calls = far_calls,
                peer](const LaneNote& note) -> std::string {
      const auto held = weak.lock();
      return held == nullptr ? "" : take_far_note(*held, *calls, peer, note);
    };
  }
  to.over = [failure = group->failure] { return failure->happened(); };
  if (peer < lane_offers_.size()) to.offer = lane_offers_[peer];
  return to;
}

LaneFailed Executable::State::fail_group() const {
  return [weak = std::weak_ptr<Group>(group)](const std::string& why) {
    if (const auto held = weak.lock()) held->fail("proxy", why);
  };
}

// Every rank gives each of those that send to it what their lanes need to know.
bool Executable::State::await_lanes(std::vector<uint8_t>& message, Diagnostics& diagnostics) {
  std::vector<uint32_t> senders;
  for (uint32_t r = 0; r < group->size(); ++r) {
    if (r != rank && proxy_sends_from(r)) senders.push_back(r);
  }
  ByteWriter writer(message);
  writer.number(static_cast<uint32_t>(senders.size()));
  for (const uint32_t sender : senders) {
    auto end = group->device->await_lane(lane_peer(sender), diagnostics);
    if (end == nullptr) return false;
    writer.number(sender).number(static_cast<uint32_t>(end->offer().size())).bytes(end->offer());
    lane_ends.push_back(std::move(end));
  }
  return true;
}

bool Executable::State::take_lane_offer(uint32_t peer, ByteReader& message,
                                        Diagnostics& diagnostics) {
  lane_offers_.resize(group->size());
  const auto offers = message.number<uint32_t>();
  for (uint32_t i = 0; i < offers && message.good(); ++i) {
    const auto sender = message.number<uint32_t>();
    const auto offer = message.bytes(message.number<uint32_t>());
    if (sender == rank) lane_offers_[peer].assign(offer.begin(), offer.end());
  }
  return message.good() || refuse(diagnostics, "bad-message", "a peer's message is cut off");
}

bool Executable::State::open_lanes(Proxy::Ports& ports, Diagnostics& diagnostics) {
  ports.lanes.resize(group->size());
  for (const Proxy::Port& port : ports.channels) {
    if (!port.used || ports.lanes[port.peer] != nullptr) continue;
    ports.lanes[port.peer] = group->device->open_lane(lane_peer(port.peer), diagnostics);
    if (ports.lanes[port.peer] == nullptr) return false;
  }
  return true;
}

bool Executable::State::start_proxy(Diagnostics& diagnostics) {
  Proxy::Ports ports{{}, {}, group->regions};
  bool any = false;
  const std::vector<device::ChannelEnd> ends = channel_ends();
  for (uint32_t c = 0; c < ends.size(); ++c) {
    const Channel& channel = plan->ranks[rank].channels[c];
    any |= ends[c].port != 0;
    const bool joined = channel.peer != kNone && channel.partner != kNone;
    const uint64_t credits =
        joined ? plan->ranks[channel.peer].channels[channel.partner].credits : 0;
    ports.channels.push_back({ends[c].port != 0, channel.peer, ends[c].partner, credits});
  }
  if (!any) return true;
  // The processor sets them, too.
  flushed = group->device->allocate_visible(ends.size() * sizeof(uint64_t), "counts of flushes",
                                            diagnostics);
  if (flushed == nullptr || !open_lanes(ports, diagnostics)) return false;
  const Proxy::Counts counts{context.queue.claimed, context.queue.seen,
                             reinterpret_cast<uint64_t*>(flushed->data())};
  proxy = Proxy::start(group->device, std::move(ports), counts, fail_group(), diagnostics);
  if (proxy == nullptr) return false;
  context.queue = proxy->queue();
  log(LogLevel::info, LogArea::proxy, rank,
      fmt::format("executable {} has a proxy for its port channels, and for signals where peers "
                  "take no atomics",
                  number));
  return true;
}

}  // namespace mscclc
