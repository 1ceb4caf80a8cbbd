#include "runtime/cuda/far/far_nodes.h"

#include <fmt/format.h>

#include "runtime/base/environment.h"
#include "runtime/cuda/far/far_lane.h"
#include "runtime/cuda/far/gpu_landing.h"
#include "runtime/net/far_memory.h"
#include "runtime/net/socket_end.h"
#include "runtime/net/socket_lane.h"

namespace mscclc::cuda {
namespace {

/// Between calls that follow one another the threads of lanes should not fall asleep.
constexpr std::chrono::milliseconds kLanesAwake{10};

bool takes_sockets(Diagnostics& diagnostics) {
  const auto lane = Environment::of_process().text(Variable::MSCCLC_LANE, diagnostics);
  if (!lane) return false;
  if (*lane == "sockets") return true;
  diagnostics.error("lane-failed", {},
                    fmt::format("MSCCLC_LANE is {}: GPUs have lanes over sockets only", *lane));
  return false;
}

}  // namespace

std::optional<MemoryPlace> place_of(const PrimaryContext& context, const void* address,
                                    Diagnostics& diagnostics) {
  const CurrentContext current(context);
  unsigned type = abi::kHostMemory;
  if (!current.is_set(diagnostics)) return std::nullopt;
  const bool known = context.driver().PointerGetAttribute(&type, abi::kMemoryType,
                                                          address_of(address)) == abi::kSuccess;
  return known && type == abi::kDeviceMemory ? MemoryPlace::device : MemoryPlace::host;
}

bool FarNodes::expose(const void* address, uint64_t bytes, const std::shared_ptr<const void>& owner,
                      MemoryHandle& handle, Diagnostics& diagnostics) {
  const auto place = place_of(*context_, address, diagnostics);
  if (!place) return false;
  auto* const data = static_cast<uint8_t*>(const_cast<void*>(address));
  Offer& offer = handle.offers.emplace_back(Offer{HandleKind::host_lane, {}});
  const ExposedId id = exposed_->add(owner != nullptr ? owner : handle.keep, data, bytes, *place);
  encode(FarPiece{.id = id, .node = node_}, offer.bytes);
  return true;
}

bool FarNodes::reach(const MemoryHandle& handle, std::unique_ptr<Memory>& memory,
                     Diagnostics& diagnostics) const {
  for (const Offer& offer : handle.offers) {
    if (offer.kind != HandleKind::host_lane) continue;
    const auto piece = decode_far_piece(offer.bytes);
    if (!piece || piece->node == node_) continue;
    memory = FarWindow::reserve(handle.bytes, piece->id, piece->device_key, diagnostics);
    return memory != nullptr;
  }
  return true;
}

bool FarNodes::start(Diagnostics& diagnostics) {
  if (net_ != nullptr) return true;
  auto options = net::read_socket_options(diagnostics);
  if (!options || !takes_sockets(diagnostics)) return false;
  options->awake = kLanesAwake;
  options->sends_apart = true;
  options->begin_thread = [context = context_](Diagnostics& problems) {
    return context->ok(context->driver().CtxSetCurrent(context->handle()),
                       fmt::format("make cuda:{} current", context->ordinal()), problems);
  };
  net_ = net::SocketNet::start(*options, diagnostics);
  return net_ != nullptr;
}

std::unique_ptr<LaneEnd> FarNodes::await_lane(const LanePeer& peer, Diagnostics& diagnostics) {
  if (!start(diagnostics)) return nullptr;
  auto landing = make_landing(context_, diagnostics);
  if (landing == nullptr) return nullptr;
  return net::await_socket_lane(peer.rank, net_, exposed_, peer.failed, std::move(landing));
}

std::unique_ptr<Lane> FarNodes::open_lane(const LanePeer& peer, std::chrono::milliseconds timeout,
                                          Diagnostics& diagnostics) {
  if (!start(diagnostics)) return nullptr;
  auto lane = net::open_socket_lane(peer, net_, timeout, diagnostics);
  return lane == nullptr ? nullptr
                         : make_far_lane(context_, std::move(lane), peer.over, diagnostics);
}

}  // namespace mscclc::cuda
