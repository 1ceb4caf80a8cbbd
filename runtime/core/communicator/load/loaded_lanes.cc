#include "runtime/core/communicator/load/loaded_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/communicator/call/beside.h"
#include "runtime/core/device/links.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

LoadedLanes::LoadedLanes(const LoadedPlan& loaded)
    : x_(loaded),
      far_calls_(loaded.options.in_turn || loaded.group->compared.far == nullptr
                     ? loaded.group->compared.far
                     : std::make_shared<FarCalls>()) {}

bool LoadedLanes::proxy_sends_from(uint32_t from) const {
  const std::vector<Channel>& channels = x_.plan->ranks[from].channels;
  return std::any_of(channels.begin(), channels.end(), [&](Channel c) {
    if (c.peer != x_.rank) return false;
    c.peer = from;  // links are as seen from here
    return c.kind == ChannelKind::port || needs_stored_signals(c, x_.group->neighbours.links);
  });
}

LanePeer LoadedLanes::lane_peer(uint32_t peer) const {
  LanePeer to{.rank = peer, .link = x_.group->neighbours.links[peer], .failed = fail_group()};
  if (far_calls_ != nullptr) {
    to.noted = [weak = std::weak_ptr<RankGroup>(x_.group), calls = far_calls_,
                peer](const LaneNote& note) -> std::string {
      const auto held = weak.lock();
      return held == nullptr ? "" : take_far_note(*held, *calls, peer, note);
    };
  }
  to.over = [failure = x_.group->failure] { return failure->happened(); };
  if (peer < offers_.size()) to.offer = offers_[peer];
  return to;
}

LaneFailed LoadedLanes::fail_group() const {
  return [weak = std::weak_ptr<RankGroup>(x_.group)](const std::string& why) {
    if (const auto held = weak.lock()) held->fail("proxy", why);
  };
}

// Every rank gives each of those that send to it what their lanes need to know.
bool LoadedLanes::await(std::vector<uint8_t>& message, Diagnostics& diagnostics) {
  std::vector<uint32_t> senders;
  for (uint32_t r = 0; r < x_.group->size(); ++r) {
    if (r != x_.rank && proxy_sends_from(r)) senders.push_back(r);
  }
  ByteWriter writer(message);
  writer.number(static_cast<uint32_t>(senders.size()));
  for (const uint32_t sender : senders) {
    auto end = x_.group->device->await_lane(lane_peer(sender), diagnostics);
    if (end == nullptr) return false;
    writer.number(sender).number(static_cast<uint32_t>(end->offer().size())).bytes(end->offer());
    ends_.push_back(std::move(end));
  }
  return true;
}

bool LoadedLanes::take_offer(uint32_t peer, ByteReader& message, Diagnostics& diagnostics) {
  offers_.resize(x_.group->size());
  const auto offers = message.number<uint32_t>();
  for (uint32_t i = 0; i < offers && message.good(); ++i) {
    const auto sender = message.number<uint32_t>();
    const auto offer = message.bytes(message.number<uint32_t>());
    if (sender == x_.rank) offers_[peer].assign(offer.begin(), offer.end());
  }
  if (!message.good()) diagnostics.error("bad-message", {}, "a peer's message is cut off");
  return message.good();
}

bool LoadedLanes::open(Proxy::Ports& ports, Diagnostics& diagnostics) {
  ports.lanes.resize(x_.group->size());
  for (const Proxy::Port& port : ports.channels) {
    if (!port.used || ports.lanes[port.peer] != nullptr) continue;
    ports.lanes[port.peer] = x_.group->device->open_lane(lane_peer(port.peer), diagnostics);
    if (ports.lanes[port.peer] == nullptr) return false;
  }
  return true;
}

bool LoadedLanes::start(const std::vector<device::ChannelEnd>& ends, device::PortQueue& queue,
                        Diagnostics& diagnostics) {
  Proxy::Ports ports{{}, {}, x_.group->memory.regions};
  bool any = false;
  for (uint32_t c = 0; c < ends.size(); ++c) {
    const Channel& channel = x_.channels()[c];
    any |= ends[c].port != 0;
    const bool joined = channel.peer != kNone && channel.partner != kNone;
    const uint64_t credits =
        joined ? x_.plan->ranks[channel.peer].channels[channel.partner].credits : 0;
    ports.channels.push_back({ends[c].port != 0, channel.peer, ends[c].partner, credits});
  }
  if (!any) return true;
  // The processor sets them, too.
  flushed_ = x_.group->device->allocate_visible(ends.size() * sizeof(uint64_t), "counts of flushes",
                                                diagnostics);
  if (flushed_ == nullptr || !open(ports, diagnostics)) return false;
  const Proxy::Counts counts{queue.claimed, queue.seen,
                             reinterpret_cast<uint64_t*>(flushed_->data())};
  proxy_ = Proxy::start(x_.group->device, std::move(ports), counts, fail_group(), diagnostics);
  if (proxy_ == nullptr) return false;
  queue = proxy_->queue();
  log(LogLevel::info, LogArea::proxy, x_.rank,
      fmt::format("executable {} has a proxy for its port channels, and for signals where peers "
                  "take no atomics",
                  x_.number));
  return true;
}

}  // namespace mscclc
