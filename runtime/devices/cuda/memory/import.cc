// The importer's side of exchange.h: tries a handle's offers one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/devices/cuda/memory/memory.h"
#include "runtime/devices/cuda/memory/own_mappings.h"
#include "runtime/devices/cuda/memory/plain_allocations.h"
#include "runtime/devices/cuda/memory/shareable.h"

namespace mscclc::cuda {
namespace {

/// Memory of this process that needs no mapping of its own. Holds the context of the GPU that it
/// lies on, if that is another, and what keeps the memory, if the runtime has allocated it.
class NeighbourMemory final : public Memory {
 public:
  NeighbourMemory(SharedContext owner, abi::Address address, uint64_t bytes, Fd held,
                  std::shared_ptr<const Mapping> mapping)
      : owner_(std::move(owner)), held_(std::move(held)), mapping_(std::move(mapping)) {
    data_ = pointer_to(address);
    bytes_ = bytes;
  }
  ~NeighbourMemory() override {
    if (!held_.valid()) return;
    held_.reset();
    PlainAllocations::of_process().sweep(owner_);
  }

 private:
  SharedContext owner_;
  Fd held_;
  const std::shared_ptr<const Mapping> mapping_;
};

/// An opened legacy handle. Opening one twice gives the same address and counts, in the driver.
/// `held` keeps the memory, if the runtime of its owner has allocated it.
class IpcMemory final : public Memory {
 public:
  IpcMemory(SharedContext context, abi::Address base, uint64_t offset, uint64_t bytes, Fd held)
      : context_(std::move(context)), base_(base), held_(std::move(held)) {
    data_ = pointer_to(base) + offset;
    bytes_ = bytes;
  }
  ~IpcMemory() override {
    const CurrentContext current(*context_);
    const OutsideCapture outside(context_->driver());
    context_->driver().IpcCloseMemHandle(base_);
  }

 private:
  SharedContext context_;
  abi::Address base_;
  Fd held_;
};

class Importer {
 public:
  Importer(const SharedContext& context, const Exchange& exchange, const MemoryHandle& handle)
      : context_(context), driver_(context->driver()), exchange_(exchange), handle_(handle) {}

  std::unique_ptr<Memory> take(const Offer& offer, Diagnostics& diagnostics) const;

 private:
  std::optional<InProcess> look_up(const Offer& offer, Diagnostics& diagnostics) const;
  std::unique_ptr<Memory> in_process(const Offer& offer, Diagnostics& diagnostics) const;
  std::unique_ptr<Memory> neighbour(const InProcess& offer, Diagnostics& diagnostics) const;
  bool enable_access(const PrimaryContext& owner, abi::Address address,
                     Diagnostics& diagnostics) const;
  std::unique_ptr<Memory> by_reference(const Offer& offer, Diagnostics& diagnostics) const;
  std::unique_ptr<Memory> by_ipc(const Offer& offer, Diagnostics& diagnostics) const;
  /// `owner`: the context of this process that the memory belongs to, if it is another's.
  std::unique_ptr<Memory> map(abi::Handle handle, Diagnostics& diagnostics,
                              SharedContext owner = nullptr) const;

  const SharedContext& context_;
  const Driver& driver_;
  const Exchange& exchange_;
  const MemoryHandle& handle_;
};

std::unique_ptr<Memory> Importer::take(const Offer& offer, Diagnostics& diagnostics) const {
  switch (offer.kind) {
    case HandleKind::same_process:
      return in_process(offer, diagnostics);
    case HandleKind::cuda_fd:
    case HandleKind::cuda_fabric:
      return by_reference(offer, diagnostics);
    case HandleKind::cuda_ipc:
      return by_ipc(offer, diagnostics);
    case HandleKind::host_fd:
    case HandleKind::host_lane:
      break;
  }
  diagnostics.error("cannot-map", {}, "memory of the host, not of a GPU");
  return nullptr;
}

std::optional<InProcess> Importer::look_up(const Offer& offer, Diagnostics& diagnostics) const {
  const std::span<const uint8_t> bytes = offer.bytes;
  const auto& process = exchange_.process;
  Result<OfferedMemory> known = Error{"the exporter is another process"};
  if (bytes.size() > process.size() && std::equal(process.begin(), process.end(), bytes.begin())) {
    known = find_ticket(bytes.subspan(process.size()), handle_.range());
  }
  if (known)
    return InProcess{known->base, known->device, static_cast<InProcess::Kind>(known->kind)};
  diagnostics.error("cannot-map", {}, known.error().text());
  return std::nullopt;
}

// Mapped allocations of another GPU get a mapping of their own here: it outlives the exporter's,
// and grants access to this GPU without touching the exporter's. It holds the context that the
// memory was made in, so that the context does not end first. On the same GPU it is the exporter's
// address: accesses of one GPU by two addresses are ordered by proxy fences only (CUDA programming
// guide, virtual aliasing).
std::unique_ptr<Memory> Importer::in_process(const Offer& offer, Diagnostics& diagnostics) const {
  const std::optional<InProcess> known = look_up(offer, diagnostics);
  if (!known) return nullptr;
  if (known->kind != InProcess::Kind::mapped || known->ordinal == context_->ordinal()) {
    return neighbour(*known, diagnostics);
  }
  HandleReference reference;
  if (!HandleReference::retain(context_, known->base, reference, diagnostics)) return nullptr;
  if (!reference) {
    diagnostics.error("cannot-map", {},
                      fmt::format("nothing is mapped at {:#x} any more", known->base));
    return nullptr;
  }
  SharedContext owner = PrimaryContext::open(driver_, known->ordinal, diagnostics);
  return owner == nullptr ? nullptr : map(reference.get(), diagnostics, std::move(owner));
}

std::unique_ptr<Memory> Importer::neighbour(const InProcess& offer,
                                            Diagnostics& diagnostics) const {
  const abi::Address address = offer.base + handle_.offset;
  Fd held;
  if (PlainAllocations::of_process().has(offer.base)) {
    held = PlainAllocations::of_process().hold(offer.base, diagnostics);
    if (!held.valid()) return nullptr;
  }
  auto mapping = OwnMappings::of_process().at(offer.base);
  SharedContext owner = context_;
  if (offer.kind != InProcess::Kind::host && offer.ordinal != context_->ordinal()) {
    owner = PrimaryContext::open(driver_, offer.ordinal, diagnostics);
    if (owner == nullptr || !enable_access(*owner, address, diagnostics)) return nullptr;
  }
  return std::make_unique<NeighbourMemory>(std::move(owner), address, handle_.bytes,
                                           std::move(held), std::move(mapping));
}

// Never disabled again: others in the process may have enabled it too, and uses are not counted.
bool Importer::enable_access(const PrimaryContext& owner, abi::Address address,
                             Diagnostics& diagnostics) const {
  const std::string pair = fmt::format("cuda:{} to cuda:{}", context_->ordinal(), owner.ordinal());
  int can = 0;
  if (!context_->ok(driver_.DeviceCanAccessPeer(&can, context_->ordinal(), owner.ordinal()),
                    "ask for access of " + pair, diagnostics)) {
    return false;
  }
  if (can == 0) {
    diagnostics.error("cannot-map", {}, "there is no access of " + pair);
    return false;
  }
  abi::Pool pool = nullptr;
  if (driver_.PointerGetAttribute(&pool, abi::kMempoolHandle, address) == abi::kSuccess &&
      pool != nullptr) {
    const abi::Access access = {{abi::kLocationDevice, context_->ordinal()}, abi::kAccessReadWrite};
    return context_->ok(driver_.MemPoolSetAccess(pool, &access, 1),
                        "enable access of " + pair + " for a memory pool", diagnostics);
  }
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics)) return false;
  const abi::Result result = driver_.CtxEnablePeerAccess(owner.handle(), 0);
  return result == abi::kPeerAccessAlreadyEnabled ||
         context_->ok(result, "enable access of " + pair, diagnostics);
}

std::unique_ptr<Memory> Importer::by_reference(const Offer& offer, Diagnostics& diagnostics) const {
  const HandleReference reference =
      import_reference(context_, exchange_, handle_, offer, diagnostics);
  return reference ? map(reference.get(), diagnostics) : nullptr;
}

std::unique_ptr<Memory> Importer::by_ipc(const Offer& offer, Diagnostics& diagnostics) const {
  abi::IpcHandle ipc = {};
  if (offer.bytes.size() < sizeof ipc.data) {
    diagnostics.error("bad-handle", {}, "the offer is damaged");
    return nullptr;
  }
  std::memcpy(ipc.data, offer.bytes.data(), sizeof ipc.data);
  Fd held;
  if (offer.bytes.size() > sizeof ipc.data) {
    held = exchange_.fetch({offer.bytes.begin() + sizeof ipc.data, offer.bytes.end()},
                           handle_.range(), exchange_.wait, diagnostics);
    if (!held.valid()) return nullptr;
  }
  abi::Address base = 0;
  if (!context_->ok(driver_.IpcOpenMemHandle(&base, ipc, abi::kIpcLazyEnablePeerAccess),
                    "open a legacy IPC handle", diagnostics)) {
    return nullptr;
  }
  auto opened =
      std::make_unique<IpcMemory>(context_, base, handle_.offset, handle_.bytes, std::move(held));
  // The driver knows how large it is, whatever the handle says.
  abi::Address start = 0;
  size_t bytes = 0;
  if (!context_->ok(driver_.MemGetAddressRange(&start, &bytes, base),
                    "find the size of what a legacy IPC handle opens", diagnostics)) {
    return nullptr;
  }
  const MemoryRange whole{0, bytes - (base - start)};
  if (whole.holds(handle_.range())) return opened;
  diagnostics.error("bad-handle", {}, whole.refusal(handle_.range()));
  return nullptr;
}

std::unique_ptr<Memory> Importer::map(abi::Handle handle, Diagnostics& diagnostics,
                                      SharedContext owner) const {
  Mapping mapping =
      Mapping::create(context_, handle, handle_.allocation, "memory of a peer", diagnostics);
  if (!mapping) return nullptr;
  return std::make_unique<MappedMemory>(std::make_shared<const Mapping>(std::move(mapping)),
                                        handle_.offset, handle_.bytes, std::move(owner));
}

bool is_sound(const MemoryHandle& handle) {
  return handle.offset <= handle.allocation && handle.bytes <= handle.allocation - handle.offset;
}

}  // namespace

std::unique_ptr<Memory> import_memory(const SharedContext& context, const Exchange& exchange,
                                      const MemoryHandle& handle, Diagnostics& diagnostics) {
  if (!is_sound(handle)) {
    diagnostics.error("bad-handle", {}, "a piece of memory lies outside its allocation");
    return nullptr;
  }
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  if (!current.is_set(diagnostics)) return nullptr;
  const Importer importer(context, exchange, handle);
  std::vector<Note> failures;
  for (const Offer& offer : handle.offers) {
    Diagnostics tried;
    if (std::unique_ptr<Memory> memory = importer.take(offer, tried)) return memory;
    for (const Diagnostic& d : tried.all()) {
      failures.push_back({fmt::format("{}: {}", name(offer.kind), d.message)});
      failures.insert(failures.end(), d.notes.begin(), d.notes.end());
    }
  }
  Diagnostic& error =
      diagnostics.error("cannot-map", {},
                        fmt::format("cannot map {} bytes of a peer's memory for cuda:{} ({})",
                                    handle.bytes, context->ordinal(), context->model()));
  error.notes = std::move(failures);
  if (error.notes.empty()) error.notes.push_back({"the peer offers no way to map it"});
  return nullptr;
}

}  // namespace mscclc::cuda
