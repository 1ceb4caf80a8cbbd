#include "runtime/devices/cuda/memory/memory.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/devices/cuda/memory/multicast.h"
#include "runtime/devices/cuda/memory/own_mappings.h"
#include "runtime/devices/cuda/memory/plain_allocations.h"

namespace mscclc::cuda {
namespace {

// As of cudaMalloc.
class PlainMemory final : public Memory {
 public:
  PlainMemory(SharedContext context, abi::Address address, uint64_t bytes)
      : context_(std::move(context)) {
    data_ = pointer_to(address);
    bytes_ = bytes;
    PlainAllocations::of_process().add(address);
  }
  ~PlainMemory() override { PlainAllocations::of_process().remove(context_, address_of(data_)); }

 private:
  SharedContext context_;
};

class PinnedMemory final : public Memory {
 public:
  PinnedMemory(SharedContext context, void* address, uint64_t bytes)
      : context_(std::move(context)) {
    data_ = static_cast<uint8_t*>(address);
    bytes_ = bytes;
  }
  ~PinnedMemory() override {
    const CurrentContext current(*context_);
    const OutsideCapture outside(context_->driver());
    context_->driver().MemFreeHost(data_);
  }

 private:
  SharedContext context_;
};

/// Network devices, and mappings for the processor, reach only what was made for that.
abi::AllocationProperties properties_of(const PrimaryContext& context, int handle_types) {
  abi::AllocationProperties properties = {};
  properties.type = abi::kAllocationPinned;
  properties.handle_types = handle_types;
  properties.location = {abi::kLocationDevice, context.ordinal()};
  properties.gpu_direct_rdma = context.attribute(abi::kRdmaOfMappingsSupported) != 0 ? 1 : 0;
  return properties;
}

}  // namespace

Allocator::Allocator(SharedContext context, OwnStream& stream, bool multicast)
    : context_(std::move(context)), stream_(stream), multicast_(multicast), first_working_(0) {
  has_mappings_ = context_->attribute(abi::kVirtualMemoryManagementSupported) != 0;
  const bool fd = context_->attribute(abi::kPosixFdSupported) != 0;
  const bool fabric = context_->attribute(abi::kFabricSupported) != 0;
  if (fabric && fd) handle_types_.push_back(abi::kFabric | abi::kPosixFd);
  if (fd) handle_types_.push_back(abi::kPosixFd);
  if (fabric && !fd) handle_types_.push_back(abi::kFabric);
  handle_types_.push_back(abi::kNoHandle);
}

std::unique_ptr<Memory> Allocator::allocate(uint64_t bytes, const std::string& what,
                                            Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  if (!current.is_set(diagnostics)) return nullptr;
  std::unique_ptr<Memory> memory = has_mappings_ ? allocate_mapped(bytes, what, diagnostics)
                                                 : allocate_plain(bytes, what, diagnostics);
  if (memory == nullptr ||
      !stream_.clear(address_of(memory->data()), bytes, "clear " + what, diagnostics)) {
    return nullptr;
  }
  return memory;
}

bool Allocator::allocated(abi::Result result, const std::string& what, uint64_t bytes,
                          Diagnostics& diagnostics) const {
  if (result == abi::kSuccess) return true;
  std::string why = text_of(context_->driver(), result);
  size_t free = 0, total = 0;
  if (result == abi::kOutOfMemory &&
      context_->driver().MemGetInfo(&free, &total) == abi::kSuccess) {
    why +=
        fmt::format("; {} of the {} bytes of cuda:{} are free", free, total, context_->ordinal());
  }
  diagnostics.error("cuda", {}, fmt::format("cannot allocate {} ({} bytes): {}", what, bytes, why));
  return false;
}

bool Allocator::granule_of(const abi::AllocationProperties& properties, uint64_t& granule,
                           Diagnostics& diagnostics) const {
  size_t bytes = 0;
  const Driver& driver = context_->driver();
  if (!context_->ok(
          driver.MemGetAllocationGranularity(&bytes, &properties, abi::kMinimumGranularity),
          "get the granularity of allocations", diagnostics)) {
    return false;
  }
  granule = bytes;
  if (!multicast_) return true;
  // Both are powers of two: the larger is a multiple of the other.
  const uint64_t bound = multicast_granule(*context_, 2, diagnostics);
  if (bound == 0) return false;
  if (bound > granule) granule = bound;
  return true;
}

Mapping Allocator::create(int handle_types, uint64_t bytes, const std::string& what,
                          abi::Result& result, Diagnostics& diagnostics) const {
  const abi::AllocationProperties properties = properties_of(*context_, handle_types);
  uint64_t granule = 0;
  if (!granule_of(properties, granule, diagnostics)) return {};
  const uint64_t whole = whole_granules(bytes == 0 ? 1 : bytes, granule);
  if (whole == 0) {
    diagnostics.error(
        "cuda", {},
        fmt::format("cannot allocate {} ({} bytes): there is no such memory", what, bytes));
    return {};
  }
  abi::Handle handle = 0;
  result = context_->driver().MemCreate(&handle, whole, &properties, 0);
  if (!allocated(result, what, bytes, diagnostics)) return {};
  const HandleReference reference(context_, handle);
  return Mapping::create(context_, handle, whole, what, diagnostics);
}

bool Allocator::makes_fabric_handles() const {
  if (!has_mappings_ || context_->attribute(abi::kFabricSupported) == 0) return false;
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  Diagnostics tried;
  abi::Result result = abi::kSuccess;
  return current.is_set(tried) &&
         static_cast<bool>(create(abi::kFabric, 1, "memory for other machines", result, tried));
}

std::unique_ptr<Memory> Allocator::allocate_mapped(uint64_t bytes, const std::string& what,
                                                   Diagnostics& diagnostics) {
  for (size_t i = first_working_; i < handle_types_.size(); ++i) {
    const bool last = i + 1 == handle_types_.size();
    Diagnostics tried;
    abi::Result result = abi::kSuccess;
    Mapping mapping = create(handle_types_[i], bytes, what, result, last ? diagnostics : tried);
    if (mapping) {
      auto shared = std::make_shared<const Mapping>(std::move(mapping));
      OwnMappings::of_process().add(shared);
      return std::make_unique<MappedMemory>(std::move(shared), 0, bytes);
    }
    // Fabric handles need a daemon and permissions, descriptors a willing container: what is
    // refused now will be so later. No more memory is another matter; memory that cannot be
    // shared is no way out of it.
    const bool full = result == abi::kOutOfMemory;
    if (full && !last && handle_types_[i + 1] == abi::kNoHandle) {
      for (const Diagnostic& d : tried.all()) diagnostics.add(d);
      return nullptr;
    }
    if (!full && !last && result != abi::kSuccess) first_working_ = i + 1;
  }
  return nullptr;
}

std::unique_ptr<Memory> Allocator::allocate_plain(uint64_t bytes, const std::string& what,
                                                  Diagnostics& diagnostics) {
  abi::Address address = 0;
  const abi::Result result = context_->driver().MemAlloc(&address, bytes == 0 ? 1 : bytes);
  if (!allocated(result, what, bytes, diagnostics)) return nullptr;
  return std::make_unique<PlainMemory>(context_, address, bytes);
}

std::unique_ptr<Memory> allocate_unshared(const SharedContext& context, OwnStream& stream,
                                          uint64_t bytes, const std::string& what,
                                          Diagnostics& diagnostics) {
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  if (!current.is_set(diagnostics)) return nullptr;
  abi::Address address = 0;
  if (!context->ok(context->driver().MemAlloc(&address, bytes),
                   fmt::format("allocate {} ({} bytes)", what, bytes), diagnostics)) {
    return nullptr;
  }
  auto memory = std::make_unique<PlainMemory>(context, address, bytes);
  return stream.clear(address, bytes, "clear " + what, diagnostics) ? std::move(memory) : nullptr;
}

std::unique_ptr<Memory> allocate_pinned(const SharedContext& context, uint64_t bytes,
                                        const std::string& what, Diagnostics& diagnostics) {
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  if (!current.is_set(diagnostics)) return nullptr;
  void* address = nullptr;
  const uint64_t whole = bytes == 0 ? 1 : bytes;
  if (!context->ok(
          context->driver().MemHostAlloc(&address, whole, abi::kHostPortable | abi::kHostDeviceMap),
          fmt::format("allocate host memory for {} ({} bytes)", what, bytes), diagnostics)) {
    return nullptr;
  }
  std::memset(address, 0, whole);
  return std::make_unique<PinnedMemory>(context, address, bytes);
}

}  // namespace mscclc::cuda
