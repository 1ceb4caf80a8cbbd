#include "runtime/api/host_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "executor/launch.h"
#include "executor/shared_atomics.h"
#include "runtime/devices/host/host_gemms.h"
#include "runtime/devices/host/host_memory.h"
#include "runtime/devices/host/host_stream.h"
#include "runtime/devices/host/host_streams.h"
#include "runtime/devices/host/in_flight.h"
#include "runtime/devices/host/message_lane.h"
#include "runtime/devices/host/shared_memory.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/far_memory.h"
#include "runtime/network/rdma/rdma.h"
#include "runtime/network/sockets/socket_end.h"
#include "runtime/network/sockets/socket_lane.h"
#include "runtime/network/sockets/socket_net.h"
#include "runtime/support/bytes.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/host_place.h"
#include "runtime/support/memory/fd_server.h"
#include "runtime/support/memory/handle.h"
#include "runtime/support/memory/tickets.h"

namespace mscclc {
namespace {

constexpr const char* kNoDescriptors = "no-descriptors";
/// What others can map, as callers from C++, C or Python know it.
constexpr const char* kWhoseMemory =
    "is made by mscclc (Device::allocate, mscclc_memory_create, Communicator.allocate in Python)";

/// Copies at once, so that there is never anything to wait for.
class HostLane final : public Lane {
 public:
  /// More would keep other queues of the proxy's thread waiting.
  uint64_t room() override { return 1 << 20; }
  bool put(const RemotePlace& to, const void* from, uint64_t bytes, Diagnostics&) override {
    copy_words(to.region->data() + to.offset, static_cast<const uint8_t*>(from), bytes);
    return true;
  }
  bool signal(const RemotePlace& count, uint64_t value, Diagnostics&) override {
    store_release(count.region->data() + count.offset, value);
    return true;
  }
  bool complete(uint64_t* count, uint64_t value, Diagnostics&) override {
    store_release(count, value);
    return true;
  }
  FlushState try_flush(Diagnostics&) override { return FlushState::done; }
};

/// True if there is memory at all of these bytes. Walks the mappings, and touches none of them.
bool is_mapped(const void* address, uint64_t bytes) {
  const auto first = reinterpret_cast<uint64_t>(address);
  if (bytes > std::numeric_limits<uint64_t>::max() - first) return false;
  const uint64_t within = first % static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(first - within);
  return ::msync(page, bytes + within, MS_ASYNC) == 0;
}

/// What the offers of a handle refer to.
struct Kept {
  Kept(std::shared_ptr<FdServer> server, std::shared_ptr<SharedMapping> mapping,
       const OfferedMemory& memory)
      : server(std::move(server)), mapping(std::move(mapping)), own(memory) {}
  ~Kept() {
    if (!ticket.empty()) server->withdraw(ticket);
  }
  const std::shared_ptr<FdServer> server;
  const std::shared_ptr<SharedMapping> mapping;  ///< nullptr: memory of another allocator
  const KeptTicket own;                          ///< for this process
  std::vector<uint8_t> ticket;                   ///< of the descriptor
};

/// Keeps a mapping where it is: nothing else can come to lie at its address. Memory of other
/// allocators is used only by its address, by threads of this process: what is there is meant.
class HostHeldMemory final : public HeldMemory {
 public:
  explicit HostHeldMemory(std::shared_ptr<SharedMapping> mapping) : mapping_(std::move(mapping)) {}
  bool is_there() const override { return true; }

 private:
  const std::shared_ptr<SharedMapping> mapping_;
};

class HostDevice final : public Device {
 public:
  HostDevice(std::shared_ptr<FdServer> server, std::string node, const Link& link, HostLanes lanes,
             FarLanes far, std::optional<uint32_t> number)
      : server_(std::move(server)),
        node_(std::move(node)),
        link_(link),
        lanes_(lanes),
        far_(far),
        number_(number) {}

  std::string name() const override { return "host"; }
  bool runs_rows() const override { return true; }
  std::optional<std::vector<uint8_t>> link_name(Diagnostics&) override {
    return std::vector<uint8_t>(node_.begin(), node_.end());
  }
  std::optional<Link> link_to(std::span<const uint8_t> peer, Diagnostics& diagnostics) override;
  void set_timeout(std::chrono::milliseconds timeout) override {
    wait_.timeout = std::min(timeout, kLongest);
  }
  void set_end_of_waits(std::function<bool()> over) override { wait_.over = std::move(over); }

  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    return make_memory(bytes, what, true, diagnostics);
  }
  /// As that of GPUs, it is not for other processes.
  std::unique_ptr<Memory> allocate_visible(uint64_t bytes, const std::string& what,
                                           Diagnostics& diagnostics) override {
    return make_memory(bytes, what, false, diagnostics);
  }

  std::unique_ptr<HeldMemory> hold_memory(const void* address, uint64_t bytes,
                                          Diagnostics& diagnostics) override {
    if (!is_mapped(address, bytes)) {
      diagnostics.error("bad-call", {},
                        fmt::format("there is no memory of {} bytes at {}", bytes, address));
      return nullptr;
    }
    return std::make_unique<HostHeldMemory>(SharedMappings::of_process().find(address, bytes));
  }
  std::optional<MemoryHandle> export_memory(const void* address, uint64_t bytes,
                                            Diagnostics& diagnostics) override;
  std::unique_ptr<Memory> import_memory(const MemoryHandle& handle,
                                        Diagnostics& diagnostics) override;
  std::unique_ptr<Memory> reach_memory(const MemoryHandle& handle,
                                       Diagnostics& diagnostics) override;

  bool write(void* to, const void* from, uint64_t bytes, Diagnostics&) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return true;
  }
  bool read(void* to, const void* from, uint64_t bytes, Diagnostics&) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return true;
  }

  std::optional<uint32_t> fits(const device::LaunchPlan& plan, Diagnostics&) override {
    return plan.blocks;
  }
  bool launch(const device::LaunchPlan& plan, StreamHandle stream, Diagnostics&) override {
    static_cast<HostStream*>(stream)->launch(plan, in_flight_->begin());
    return true;
  }
  bool copy(void* to, const void* from, uint64_t bytes, StreamHandle stream,
            Diagnostics&) override {
    static_cast<HostStream*>(stream)->copy(to, from, bytes, in_flight_->begin());
    return true;
  }
  bool scale(const Scaling& what, StreamHandle stream, Diagnostics&) override {
    static_cast<HostStream*>(stream)->scale(what, in_flight_->begin());
    return true;
  }
  bool synchronize(StreamHandle stream, Diagnostics& diagnostics) override {
    const auto run = static_cast<HostStream*>(stream)->synchronize();
    if (run) return true;
    diagnostics.error("out-of-memory", {}, "a launch has not run: " + run.error().text());
    return false;
  }
  bool mark(StreamHandle stream, std::unique_ptr<StreamMark>& mark, Diagnostics&) override {
    auto made = std::make_unique<HostMark>();
    static_cast<HostStream*>(stream)->mark(made->flag);
    mark = std::move(made);
    return true;
  }
  std::unique_ptr<StreamChain> chain_streams(Replays, Diagnostics&) override {
    return std::make_unique<HostChain>();
  }
  StreamHandle create_stream(Diagnostics& diagnostics) override {
    auto stream = HostStream::create(diagnostics);
    if (stream == nullptr) return nullptr;
    return HostStreams::of_process().add(std::move(stream), this);
  }
  bool drain(Diagnostics&) override {
    for (const auto& stream : HostStreams::of_process().of(this)) stream->drain();
    in_flight_->wait();
    return true;
  }
  void destroy_stream(StreamHandle handle) override {
    (void)HostStreams::of_process().take(handle);  // waits for it outside the lock
  }

  GemmStreams* gemms() override { return &gemms_; }

  std::unique_ptr<LaneEnd> await_lane(const LanePeer& peer, Diagnostics& diagnostics) override {
    if (lanes_ == HostLanes::messages) {
      return await_messages(peer.rank, server_, exposed_, peer.failed, diagnostics);
    }
    if (peer.link.access) return std::make_unique<LaneEnd>();
    if (!start_far(diagnostics)) return nullptr;
    if (rdma_ != nullptr) return rdma_->await_lane(peer, exposed_);
    return net::await_socket_lane(peer.rank, net_, exposed_, peer.failed, nullptr, peer.noted);
  }
  std::unique_ptr<Lane> open_lane(const LanePeer& peer, Diagnostics& diagnostics) override {
    if (lanes_ == HostLanes::messages) {
      return open_messages(peer, {wait_.timeout, peer.over}, diagnostics);
    }
    if (peer.link.access) return std::make_unique<HostLane>();
    if (!start_far(diagnostics)) return nullptr;
    if (rdma_ == nullptr) return net::open_socket_lane(peer, net_, wait_.timeout, diagnostics);
    return rdma_->open_lane(peer, find_allocation, wait_.timeout, diagnostics);
  }

 private:
  static std::unique_ptr<Memory> make_memory(uint64_t bytes, const std::string& what, bool others,
                                             Diagnostics& diagnostics) {
    auto mapping = SharedMapping::create(std::max<uint64_t>(bytes, 1), what, diagnostics, others);
    if (mapping == nullptr) return nullptr;
    SharedMappings::of_process().add(mapping);
    return std::make_unique<HostMemory>(mapping, mapping->data(), bytes);
  }
  /// Makes ready for lanes to other nodes. False: reported.
  [[nodiscard]] bool start_far(Diagnostics& diagnostics);
  static net::Allocation allocation_of(const std::shared_ptr<SharedMapping>& mapping);
  static std::optional<net::Allocation> find_allocation(const void* from, uint64_t bytes);
  /// Lets lanes write a piece of a mapping. False: reported.
  [[nodiscard]] bool expose(uint8_t* data, uint64_t bytes,
                            const std::shared_ptr<SharedMapping>& mapping, Offer& offer,
                            Diagnostics& diagnostics);
  /// Can lanes need what this rank exports, rather than a mapping of it?
  bool exposes() const { return lanes_ == HostLanes::messages || has_far_peers_; }
  Result<std::unique_ptr<Memory>> import_offer(const MemoryHandle& handle, const Offer& offer);
  Result<std::unique_ptr<Memory>> import_same_process(const MemoryHandle& handle,
                                                      const Offer& offer);
  Result<std::unique_ptr<Memory>> import_file(const MemoryHandle& handle, const Offer& offer);

  static constexpr std::chrono::milliseconds kLongest{std::numeric_limits<int>::max()};

  const std::shared_ptr<FdServer> server_;
  const std::string node_;  ///< a text that no other node has
  const Link link_;         ///< to ranks of this node
  const HostLanes lanes_;   ///< the same
  const FarLanes far_;
  const std::optional<uint32_t> number_;  ///< of the simulated node
  bool has_far_peers_ = false;
  std::shared_ptr<net::SocketNet> net_;    ///< nullptr: not needed so far
  std::shared_ptr<const net::Rdma> rdma_;  ///< nullptr: not needed
  const std::shared_ptr<ExposedMemory> exposed_ = std::make_shared<ExposedMemory>();
  FetchWait wait_;  ///< for descriptors
  const std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  HostGemms gemms_{*this, in_flight_};
};

/// nullopt: it takes no orders.
std::optional<FarPiece> find_exposed(const MemoryHandle& handle) {
  for (const Offer& offer : handle.offers) {
    if (offer.kind != HandleKind::host_lane) continue;
    if (auto piece = decode_far_piece(offer.bytes)) return piece;
  }
  return std::nullopt;
}

std::optional<ExposedId> exposed_id(const MemoryHandle& handle) {
  const auto exposed = find_exposed(handle);
  return exposed ? std::optional(exposed->id) : std::nullopt;
}

// Between nodes there are lanes over sockets or verbs.
std::optional<Link> HostDevice::link_to(std::span<const uint8_t> peer, Diagnostics&) {
  if (std::ranges::equal(peer, node_)) return link_;
  has_far_peers_ = true;
  return Link{.kind = LinkKind::pcie,
              .access = false,
              .atomics = false,
              .why = "it is on another node",
              .lanes = true};
}

// Lanes over verbs need sockets, too. Simulated nodes take turns at the devices of this machine.
bool HostDevice::start_far(Diagnostics& diagnostics) {
  if (net_ == nullptr) {
    const auto options = net::read_socket_options(diagnostics);
    if (options) net_ = net::SocketNet::start(*options, diagnostics);
  }
  if (net_ == nullptr || far_ == FarLanes::sockets || rdma_ != nullptr) return net_ != nullptr;
  rdma_ = net::start_rdma(number_.value_or(0), net_, diagnostics);
  return rdma_ != nullptr;
}

net::Allocation HostDevice::allocation_of(const std::shared_ptr<SharedMapping>& mapping) {
  return {mapping->data(), mapping->bytes(), &mapping->attached(), mapping};
}

std::optional<net::Allocation> HostDevice::find_allocation(const void* from, uint64_t bytes) {
  const auto mapping = SharedMappings::of_process().find(from, bytes);
  if (mapping == nullptr) return std::nullopt;
  return allocation_of(mapping);
}

bool HostDevice::expose(uint8_t* data, uint64_t bytes,
                        const std::shared_ptr<SharedMapping>& mapping, Offer& offer,
                        Diagnostics& diagnostics) {
  FarPiece piece{.id = exposed_->add(mapping, data, bytes), .node = node_};
  if (has_far_peers_ && far_ == FarLanes::verbs) {
    if (!start_far(diagnostics)) return false;
    piece.device_key = rdma_->expose(allocation_of(mapping), data, bytes, diagnostics);
    if (!piece.device_key) return false;
  }
  encode(piece, offer.bytes);
  return true;
}

// A ticket for ranks of this process. The file is for all others: memory of other allocators has
// none.
std::optional<MemoryHandle> HostDevice::export_memory(const void* address, uint64_t bytes,
                                                      Diagnostics& diagnostics) {
  MemoryHandle handle;
  handle.bytes = handle.allocation = bytes;
  const auto mapping = SharedMappings::of_process().find(address, bytes);
  if (mapping != nullptr) {
    handle.offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - mapping->data());
    handle.allocation = mapping->bytes();
  }
  auto kept = std::make_shared<Kept>(
      server_, mapping,
      OfferedMemory{.base = reinterpret_cast<uint64_t>(address) - handle.offset,
                    .range = handle.range()});
  handle.offers.push_back({HandleKind::same_process, kept->own.bytes()});
  if (mapping != nullptr && mapping->file() != nullptr) {
    kept->ticket = server_->offer(mapping->file(), handle.range(), diagnostics);
    if (kept->ticket.empty()) return std::nullopt;
    handle.offers.push_back({HandleKind::host_fd, kept->ticket});
  }
  if (mapping != nullptr && exposes()) {
    Offer& offer = handle.offers.emplace_back(Offer{HandleKind::host_lane, {}});
    auto* data = static_cast<uint8_t*>(const_cast<void*>(address));
    if (!expose(data, bytes, mapping, offer, diagnostics)) return std::nullopt;
  }
  handle.keep = kept;
  return handle;
}

Result<std::unique_ptr<Memory>> HostDevice::import_same_process(const MemoryHandle& handle,
                                                                const Offer& offer) {
  const auto known = find_ticket(offer.bytes, handle.range());
  if (!known) return known.error();
  auto* data = reinterpret_cast<uint8_t*>(known->base + handle.offset);
  return std::make_unique<HostMemory>(SharedMappings::of_process().find(data, handle.bytes), data,
                                      handle.bytes, exposed_id(handle));
}

/// The error has a code where it is more than that this offer is of no use.
Result<std::unique_ptr<Memory>> HostDevice::import_file(const MemoryHandle& handle,
                                                        const Offer& offer) {
  Diagnostics problems;
  Fd file = fetch_fd(offer.bytes, handle.range(), wait_, problems);
  std::shared_ptr<SharedMapping> mapping;
  if (file.valid()) mapping = SharedMapping::open(std::move(file), handle.allocation, problems);
  if (mapping == nullptr) {
    if (problems.all().empty()) return Error{"no descriptor came"};
    const Diagnostic& first = problems.all().front();
    const bool has_none = problems.has_errors() && first.code == kNoDescriptors;
    return Error{.message = first.message, .code = has_none ? kNoDescriptors : ""};
  }
  return std::make_unique<HostMemory>(mapping, mapping->data() + handle.offset, handle.bytes,
                                      exposed_id(handle));
}

Result<std::unique_ptr<Memory>> HostDevice::import_offer(const MemoryHandle& handle,
                                                         const Offer& offer) {
  switch (offer.kind) {
    case HandleKind::same_process:
      return import_same_process(handle, offer);
    case HandleKind::host_fd:
      return import_file(handle, offer);
    default:
      return Error{"not of this device"};
  }
}

std::unique_ptr<Memory> HostDevice::import_memory(const MemoryHandle& handle,
                                                  Diagnostics& diagnostics) {
  std::string tried, code = "cannot-map";
  if (const auto exposed = find_exposed(handle); exposed && exposed->node != node_) {
    diagnostics.error(code, {},
                      fmt::format("cannot map {} bytes of a peer's memory: it is on another node, "
                                  "whose memory only lanes reach",
                                  handle.bytes));
    return nullptr;
  }
  for (const Offer& offer : handle.offers) {
    if (offer.kind == HandleKind::host_lane) continue;  // maps nothing
    auto memory = import_offer(handle, offer);
    if (memory) return *std::move(memory);
    if (!memory.error().code.empty()) code = memory.error().code;
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", mscclc::name(offer.kind),
                         memory.error().text());
  }
  diagnostics.error(
      code, {},
      fmt::format("cannot map {} bytes of a peer's memory ({}); memory that other "
                  "processes map {}",
                  handle.bytes, tried.empty() ? "nothing was offered" : tried, kWhoseMemory));
  return nullptr;
}

std::unique_ptr<Memory> HostDevice::reach_memory(const MemoryHandle& handle,
                                                 Diagnostics& diagnostics) {
  const auto exposed = find_exposed(handle);
  const bool far = exposed && exposed->node != node_;
  if (lanes_ == HostLanes::copies && !far) return import_memory(handle, diagnostics);
  if (exposed) {
    return FarWindow::reserve(handle.bytes, *exposed, diagnostics);
  }
  diagnostics.error(
      "cannot-map", {},
      fmt::format("{} bytes of a peer's memory take no orders of lanes; memory that does {}",
                  handle.bytes, kWhoseMemory));
  return nullptr;
}

/// As MSCCLC_LANE says. nullopt: reported.
std::optional<FarLanes> read_far_lanes(Diagnostics& diagnostics) {
  const auto lane = Environment::of_process().text(Variable::MSCCLC_LANE, diagnostics);
  if (!lane) return std::nullopt;
  return *lane == "verbs" ? FarLanes::verbs : FarLanes::sockets;
}

}  // namespace

bool is_host_stream(StreamHandle stream) { return HostStreams::of_process().has(stream); }

std::unique_ptr<Device> make_host_device(Diagnostics& diagnostics, const Link& link,
                                         HostLanes lanes, std::optional<uint32_t> node,
                                         std::optional<FarLanes> far) {
  const auto place = this_host_place(diagnostics);
  if (place && !far) far = read_far_lanes(diagnostics);
  if (!place || !far) return nullptr;
  std::shared_ptr<FdServer> server = FdServer::of_process(diagnostics);
  if (server == nullptr) return nullptr;
  return std::make_unique<HostDevice>(std::move(server), text_of(*place, node), link, lanes, *far,
                                      node);
}

}  // namespace mscclc
