// The exporter's side of exchange.h: finds out what allocator has made a piece of memory, and
// offers it in all ways that this allows.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "runtime/devices/cuda/driver/stream.h"
#include "runtime/devices/cuda/memory/plain_allocations.h"
#include "runtime/devices/cuda/memory/shareable.h"

namespace mscclc::cuda {
namespace {

/// The allocation that a piece lies in.
struct Allocation {
  HandleReference reference;  ///< VMM only
  InProcess::Kind kind = InProcess::Kind::plain;
  abi::Address base = 0;
  uint64_t bytes = 0;
  int ordinal = 0;
  bool from_pool = false;
};

class Exporter {
 public:
  Exporter(const SharedContext& context, const Exchange& exchange, abi::Address address,
           uint64_t bytes, Diagnostics& diagnostics)
      : context_(context),
        driver_(context->driver()),
        exchange_(exchange),
        address_(address),
        bytes_(bytes),
        diagnostics_(diagnostics) {}

  std::optional<MemoryHandle> run();

 private:
  template <class T>
  bool attribute(abi::PointerAttribute attribute, T& value) const {
    return driver_.PointerGetAttribute(&value, attribute, address_) == abi::kSuccess;
  }
  Diagnostic& refuse(const std::string& why) {
    return diagnostics_.error(
        "cannot-share", {},
        fmt::format("cannot share {} bytes at {:#x} with other ranks: {}", bytes_, address_, why));
  }
  bool find();
  bool find_place();
  bool find_range();
  bool find_host_range();
  bool is_one_allocation();
  void offer_in_process();
  void offer_ipc();
  void offer_to_processes();
  void warn_in_process_only();

  const SharedContext& context_;
  const Driver& driver_;
  const Exchange& exchange_;
  const abi::Address address_;
  const uint64_t bytes_;
  Diagnostics& diagnostics_;
  Allocation allocation_;
  MemoryHandle handle_;
  std::shared_ptr<KeptOffers> kept_ = std::make_shared<KeptOffers>();
  Diagnostics refused_;  ///< why kinds could not be offered
};

std::optional<MemoryHandle> Exporter::run() {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  if (!current.is_set(diagnostics_) || !find()) return std::nullopt;
  handle_.bytes = bytes_;
  handle_.offset = address_ - allocation_.base;
  handle_.allocation = allocation_.bytes;
  offer_in_process();
  offer_to_processes();
  if (handle_.offers.size() == 1) warn_in_process_only();
  kept_->keep(std::move(allocation_.reference));
  handle_.keep = std::move(kept_);
  return std::move(handle_);
}

bool Exporter::find() { return find_place() && find_range() && is_one_allocation(); }

bool Exporter::find_place() {
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  abi::Pool pool = nullptr;
  if (!attribute(abi::kMemoryType, type)) {
    refuse("CUDA does not know this address")
        .notes.push_back({"buffers of a collective must lie in memory of the GPU (cudaMalloc, "
                          "cuMemCreate or a pool)"});
    return false;
  }
  if (attribute(abi::kIsManaged, managed) && managed != 0) {
    refuse("it is managed memory")
        .notes.push_back({"allocate the buffer with cudaMalloc instead of cudaMallocManaged"});
    return false;
  }
  if (type == abi::kHostMemory) {
    allocation_.kind = InProcess::Kind::host;
    allocation_.ordinal = context_->ordinal();
    return true;
  }
  if (attribute(abi::kDeviceOrdinal, ordinal) && ordinal != context_->ordinal()) {
    refuse(fmt::format("it lies on cuda:{}, but this rank runs on cuda:{}", ordinal,
                       context_->ordinal()));
    return false;
  }
  allocation_.ordinal = context_->ordinal();
  allocation_.from_pool = attribute(abi::kMempoolHandle, pool) && pool != nullptr;
  if (context_->attribute(abi::kVirtualMemoryManagementSupported) != 0 &&
      !HandleReference::retain(context_, address_, allocation_.reference, diagnostics_)) {
    return false;
  }
  if (allocation_.reference) allocation_.kind = InProcess::Kind::mapped;
  return true;
}

// A piece in one of several mappings that lie side by side: the range is that of its own mapping.
bool Exporter::find_range() {
  size_t bytes = 0;
  if (allocation_.kind == InProcess::Kind::host) return find_host_range();
  const bool mapped = allocation_.kind == InProcess::Kind::mapped &&
                      attribute(abi::kMappingBaseAddress, allocation_.base) &&
                      attribute(abi::kMappingSize, bytes);
  if (!mapped &&
      !context_->ok(driver_.MemGetAddressRange(&allocation_.base, &bytes, address_),
                    fmt::format("find the allocation at {:#x}", address_), diagnostics_)) {
    return false;
  }
  allocation_.bytes = bytes;
  return true;
}

// CUDA has no base for what was registered piece by piece: the last byte must be known, too.
bool Exporter::find_host_range() {
  unsigned type = 0;
  const abi::Address last = address_ + bytes_ - 1;
  if (last < address_ ||
      driver_.PointerGetAttribute(&type, abi::kMemoryType, last) != abi::kSuccess ||
      type != abi::kHostMemory) {
    refuse("it is pinned memory of the host, and CUDA does not know its last byte")
        .notes.push_back({"pass the size that cudaHostAlloc or cudaHostRegister was given"});
    return false;
  }
  allocation_.base = address_;
  allocation_.bytes = bytes_;
  return true;
}

bool Exporter::is_one_allocation() {
  const uint64_t offset = address_ - allocation_.base;
  if (offset > allocation_.bytes || bytes_ > allocation_.bytes - offset) {
    refuse(fmt::format("the allocation there ends {} bytes on", allocation_.bytes - offset))
        .notes.push_back({"a buffer must lie in one allocation: of PyTorch's expandable segments "
                          "only pieces inside one segment can be shared"});
    return false;
  }
  if (!allocation_.reference || bytes_ < 2) return true;
  HandleReference last;
  if (!HandleReference::retain(context_, address_ + bytes_ - 1, last, diagnostics_)) return false;
  if (last && last.get() == allocation_.reference.get()) return true;
  refuse("it lies in several allocations");
  return false;
}

void Exporter::offer_in_process() {
  const auto& ticket = kept_->own({.base = allocation_.base,
                                   .range = handle_.range(),
                                   .device = allocation_.ordinal,
                                   .kind = static_cast<uint8_t>(allocation_.kind)});
  std::vector<uint8_t> bytes(exchange_.process.begin(), exchange_.process.end());
  bytes.insert(bytes.end(), ticket.begin(), ticket.end());
  handle_.offers.push_back({HandleKind::same_process, std::move(bytes)});
}

void Exporter::offer_to_processes() {
  switch (allocation_.kind) {
    case InProcess::Kind::mapped: {
      int types = 0;
      if (!allocation_.reference.handle_types(types, refused_)) return;
      kept_->offer(allocation_.reference, types, context_, exchange_, handle_, refused_);
      if ((types & (abi::kPosixFd | abi::kFabric)) == 0) {
        refused_.error("cannot-share", {}, "it was created without a shareable handle type")
            .notes.push_back({"set CUmemAllocationProp::requestedHandleTypes"});
      }
      return;
    }
    case InProcess::Kind::plain:
      if (allocation_.from_pool) {
        refused_.error("cannot-share", {},
                       "it comes from a memory pool (cudaMallocAsync), whose pieces cannot be "
                       "exported one by one");
      } else {
        offer_ipc();
      }
      return;
    case InProcess::Kind::host:
      refused_.error("cannot-share", {}, "it is host memory");
      return;
  }
}

// With memory that the runtime has allocated goes a ticket for what keeps it.
void Exporter::offer_ipc() {
  int capable = 0;
  if (attribute(abi::kIsLegacyIpcCapable, capable) && capable == 0) {
    refused_.error("cannot-share", {}, "the driver says that it has no legacy IPC handle");
    return;
  }
  const CurrentContext current(*context_);
  abi::IpcHandle ipc = {};
  if (!current.is_set(refused_) || !context_->ok(driver_.IpcGetMemHandle(&ipc, allocation_.base),
                                                 "get a legacy IPC handle", refused_)) {
    return;
  }
  std::vector<uint8_t> bytes(ipc.data, ipc.data + sizeof ipc.data);
  if (PlainAllocations::of_process().has(allocation_.base)) {
    const Fd held = PlainAllocations::of_process().hold(allocation_.base, refused_);
    const auto ticket = kept_->lend(held, exchange_, handle_.range(), refused_);
    if (ticket.empty()) return;
    bytes.insert(bytes.end(), ticket.begin(), ticket.end());
  }
  handle_.offers.push_back({HandleKind::cuda_ipc, std::move(bytes)});
}

void Exporter::warn_in_process_only() {
  Diagnostic& warning = diagnostics_.warning(
      "shared-in-process-only", {},
      fmt::format("{} bytes at {:#x} can be mapped inside this process only", bytes_, address_));
  for (const Diagnostic& d : refused_.all()) {
    warning.notes.push_back({d.message});
    warning.notes.insert(warning.notes.end(), d.notes.begin(), d.notes.end());
  }
}

}  // namespace

Exchange::ProcessId this_process() {
  static const Exchange::ProcessId random = [] {
    Exchange::ProcessId id = {};
    fill_random(id);
    return id;
  }();
  Exchange::ProcessId id = random;
  const pid_t pid = getpid();
  std::memcpy(id.data(), &pid, sizeof pid);
  return id;
}

std::optional<Exchange> make_exchange(Diagnostics& diagnostics) {
  std::shared_ptr<FdServer> server = FdServer::of_process(diagnostics);
  if (server == nullptr) return std::nullopt;
  return Exchange{.process = this_process(), .server = std::move(server), .fetch = fetch_fd};
}

std::optional<MemoryHandle> export_memory(const SharedContext& context, const Exchange& exchange,
                                          const void* address, uint64_t bytes,
                                          Diagnostics& diagnostics) {
  return Exporter(context, exchange, address_of(address), bytes, diagnostics).run();
}

}  // namespace mscclc::cuda
