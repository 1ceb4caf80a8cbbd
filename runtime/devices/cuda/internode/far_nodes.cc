#include "runtime/devices/cuda/internode/far_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "ir/diagnostics/first_message.h"
#include "runtime/devices/cuda/internode/far_lane.h"
#include "runtime/devices/cuda/internode/gpu_arrivals.h"
#include "runtime/devices/cuda/internode/gpu_landing.h"
#include "runtime/network/far_memory.h"
#include "runtime/network/sockets/socket_end.h"
#include "runtime/network/sockets/socket_lane.h"
#include "runtime/network/threads/copy_workers.h"
#include "runtime/network/verbs/port/pci.h"
#include "runtime/network/verbs/verbs_end.h"
#include "runtime/network/verbs/verbs_lane.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"

namespace mscclc::cuda {
namespace {

/// Between calls that follow one another the threads of lanes should not fall asleep.
constexpr std::chrono::milliseconds kLanesAwake{10};

/// A thread copies for one connection. Over verbs the sockets carry little.
net::SocketOptions socket_options(bool over_verbs) {
  net::SocketOptions options;
  options.awake = kLanesAwake;
  if (over_verbs) return options;
  options.sends_apart = true;
  options.workers =
      net::workers_of_gpu(std::thread::hardware_concurrency(), verbs::PciTree().gpus().size());
  return options;
}

/// As MSCCLC_LANE says. nullopt: reported.
std::optional<bool> takes_verbs(Diagnostics& diagnostics) {
  const auto lane = Environment::of_process().text(Variable::MSCCLC_LANE, diagnostics);
  if (!lane) return std::nullopt;
  return *lane == "verbs";
}

/// By which counts of a GPU are set; said once. nullptr: there is none.
std::shared_ptr<const GdrCopy> open_gdrcopy(const std::string& library, bool disabled, int gpu) {
  using Opened = Result<std::shared_ptr<const GdrCopy>>;
  const Opened gdr =
      disabled ? Opened(Error{"MSCCLC_FORCE_DISABLE_GDR is set"}) : GdrCopy::open(library);
  log(LogLevel::info, LogArea::init, std::nullopt,
      fmt::format("counts of cuda:{} are set {}", gpu,
                  gdr ? "through GDRCopy " + (*gdr)->version()
                      : "by its streams (no GDRCopy: " + gdr.error().text() + ")"));
  return gdr ? *gdr : nullptr;
}

/// "0000:3b:00.0"; "": the driver does not say.
std::string pci_number(const PrimaryContext& context) {
  char text[32] = {};
  const auto result = context.driver().DeviceGetPCIBusId(text, sizeof text, context.ordinal());
  return result == abi::kSuccess ? text : "";
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

std::shared_ptr<const VerbsMemory::Exposed> FarNodes::register_memory(uint8_t* data, uint64_t bytes,
                                                                      MemoryPlace place,
                                                                      OwnAllocation* own,
                                                                      MemoryHandle& handle,
                                                                      Diagnostics& diagnostics) {
  std::shared_ptr<const VerbsMemory::Exposed> exposed;
  if (own != nullptr) {
    const auto offset = static_cast<uint64_t>(data - own->memory().data());
    exposed = std::static_pointer_cast<const VerbsMemory::Exposed>(
        own->attached().get(verbs_->adapter()->port().context.get(), offset, bytes,
                            [&] { return verbs_->expose(data, bytes, place, diagnostics); }));
  } else {
    exposed = verbs_->expose(data, bytes, place, diagnostics);
    using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    handle.keep = std::make_shared<const Both>(handle.keep, exposed);
  }
  return exposed;
}

bool FarNodes::expose(const void* address, uint64_t bytes, MemoryHandle& handle,
                      Diagnostics& diagnostics) {
  const auto place = place_of(*context_, address, diagnostics);
  const auto over_verbs = takes_verbs(diagnostics);
  if (!place || !over_verbs || (*over_verbs && !start(diagnostics))) return false;
  auto* const data = static_cast<uint8_t*>(const_cast<void*>(address));
  const std::shared_ptr<OwnAllocation> own = own_->find(address, bytes);
  FarPiece piece{.place = *place, .node = node_};
  const uint8_t* staging = nullptr;
  if (verbs_ != nullptr) {
    const auto exposed = register_memory(data, bytes, *place, own.get(), handle, diagnostics);
    if (exposed == nullptr) return false;
    piece.device_key = exposed->key;
    if (exposed->staging != nullptr) staging = exposed->staging->data();
  }
  const auto owner = own != nullptr ? std::shared_ptr<const void>(own) : handle.keep;
  piece.id = exposed_->add(owner, data, bytes, *place, staging);
  Offer& offer = handle.offers.emplace_back(Offer{HandleKind::host_lane, {}});
  encode(piece, offer.bytes);
  return true;
}

bool FarNodes::reach(const MemoryHandle& handle, std::unique_ptr<Memory>& memory,
                     Diagnostics& diagnostics) const {
  for (const Offer& offer : handle.offers) {
    if (offer.kind != HandleKind::host_lane) continue;
    const auto piece = decode_far_piece(offer.bytes);
    if (!piece || piece->node == node_) continue;
    memory = FarWindow::reserve(handle.bytes, *piece, diagnostics);
    return memory != nullptr;
  }
  return true;
}

bool FarNodes::start(Diagnostics& diagnostics) {
  if (net_ != nullptr) return true;
  const auto over_verbs = takes_verbs(diagnostics);
  if (!over_verbs) return false;
  auto options = net::read_socket_options(diagnostics, socket_options(*over_verbs));
  if (!options) return false;
  if (!Environment::of_process().has(Variable::MSCCLC_SOCKET_CONNECTIONS)) {
    options->connections = std::max(options->connections, options->workers);
  }
  options->begin_thread = [context = context_](Diagnostics& problems) {
    return context->ok(context->driver().CtxSetCurrent(context->handle()),
                       fmt::format("make cuda:{} current", context->ordinal()), problems);
  };
  net_ = net::SocketNet::start(*options, diagnostics);
  if (net_ == nullptr || !*over_verbs || start_verbs(diagnostics)) return net_ != nullptr;
  net_ = nullptr;
  return false;
}

bool FarNodes::start_verbs(Diagnostics& diagnostics) {
  auto options = verbs::read_verbs_options(diagnostics);
  const auto disabled =
      Environment::of_process().number(Variable::MSCCLC_FORCE_DISABLE_GDR, diagnostics);
  const auto gdrcopy = Environment::of_process().text(Variable::MSCCLC_GDRCOPY_SO, diagnostics);
  if (!options || !disabled || !gdrcopy) return false;
  options->gpu = pci_number(*context_);
  options->data_direct = *disabled == 0;
  auto adapter = verbs::Adapter::start(*options, net_, diagnostics);
  if (adapter == nullptr) return false;
  verbs_ = std::make_shared<VerbsMemory>(context_, std::move(adapter), *disabled == 0);
  counts_ = std::make_shared<const GpuCounts>(
      context_, own_, open_gdrcopy(*gdrcopy, *disabled != 0, context_->ordinal()));
  return true;
}

std::unique_ptr<LaneEnd> FarNodes::await_lane(const LanePeer& peer, Diagnostics& diagnostics) {
  if (!start(diagnostics)) return nullptr;
  if (verbs_ != nullptr) {
    auto arrivals = make_arrivals(context_, verbs_, counts_, diagnostics);
    if (arrivals == nullptr) return nullptr;
    return verbs::await_verbs_lane(peer.rank, verbs_->adapter(), exposed_, peer.failed,
                                   std::move(arrivals), peer.noted);
  }
  auto landing = make_landing(context_, diagnostics);
  if (landing == nullptr) return nullptr;
  return net::await_socket_lane(peer.rank, net_, exposed_, peer.failed, std::move(landing),
                                peer.noted);
}

std::unique_ptr<Lane> FarNodes::open_lane(const LanePeer& peer, std::chrono::milliseconds timeout,
                                          Diagnostics& diagnostics) {
  if (!start(diagnostics)) return nullptr;
  std::unique_ptr<Lane> lane;
  Reads reads;
  if (verbs_ == nullptr) {
    lane = net::open_socket_lane(peer, net_, timeout, diagnostics);
  } else {
    const auto find = [context = context_, own = own_, verbs = verbs_](
                          const void* from, uint64_t bytes) -> verbs::Source {
      Diagnostics problems;
      const auto allocation = own->find(from, bytes);
      if (allocation == nullptr) return {};  // of another allocator, which may free it at any time
      const auto place = place_of(*context, from, problems);
      if (!place) return {.error = first_message(problems)};
      return verbs->source(*allocation, *place);
    };
    lane = verbs::open_verbs_lane(peer, verbs_->adapter(), find, timeout, diagnostics);
    // Fewer bytes are read by the processor.
    reads = [find](const void* from, uint64_t bytes) {
      return bytes > verbs::kInline && find(from, bytes).key;
    };
  }
  if (lane == nullptr) return nullptr;
  return make_far_lane(context_, std::move(lane), std::move(reads), *own_, peer.over, diagnostics);
}

}  // namespace mscclc::cuda
