#include "runtime/devices/cuda/driver/vmm.h"

#include <fmt/format.h>

#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

struct Allocations {
  std::mutex mutex;
};

}  // namespace

AllocationTurn::AllocationTurn() : lock_(process_wide<Allocations>().mutex) {}

HandleReference::~HandleReference() {
  if (context_ == nullptr) return;
  const OutsideCapture outside(context_->driver());
  const AllocationTurn turn;
  context_->driver().MemRelease(handle_);
}

bool HandleReference::retain(const SharedContext& context, abi::Address address,
                             HandleReference& reference, Diagnostics& diagnostics) {
  abi::Handle handle = 0;
  abi::Result result = abi::kSuccess;
  {
    const AllocationTurn turn;
    result = context->driver().MemRetainAllocationHandle(
        &handle, reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
  }
  if (result == abi::kInvalidValue) return true;
  if (!context->ok(result, fmt::format("find the allocation at {:#x}", address), diagnostics)) {
    return false;
  }
  reference = HandleReference(context, handle);
  return true;
}

bool HandleReference::handle_types(int& types, Diagnostics& diagnostics) const {
  abi::AllocationProperties properties = {};
  if (!context_->ok(context_->driver().MemGetAllocationPropertiesFromHandle(&properties, handle_),
                    "get the properties of an allocation", diagnostics)) {
    return false;
  }
  types = properties.handle_types;
  return true;
}

Mapping::~Mapping() {
  if (context_ == nullptr || address_ == 0) return;
  const OutsideCapture outside(context_->driver());
  if (mapped_) {
    const AllocationTurn turn;
    context_->driver().MemUnmap(address_, bytes_);
  }
  context_->driver().MemAddressFree(address_, bytes_);
}

void Mapping::swap(Mapping& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
}

Mapping Mapping::create(const SharedContext& context, abi::Handle handle, uint64_t bytes,
                        const std::string& what, Diagnostics& diagnostics, uint64_t alignment) {
  const Driver& driver = context->driver();
  Mapping mapping;
  mapping.context_ = context;
  mapping.bytes_ = bytes;
  const std::string named = fmt::format("{} ({} bytes)", what, bytes);
  abi::Address address = 0;
  if (!context->ok(driver.MemAddressReserve(&address, bytes, alignment, 0, 0),
                   "reserve addresses for " + named, diagnostics)) {
    return {};
  }
  mapping.address_ = address;
  const AllocationTurn turn;
  if (!context->ok(driver.MemMap(address, bytes, 0, handle, 0), "map " + named, diagnostics)) {
    return {};
  }
  mapping.mapped_ = true;
  const abi::Access access = {{abi::kLocationDevice, context->ordinal()}, abi::kAccessReadWrite};
  if (!context->ok(driver.MemSetAccess(address, bytes, &access, 1),
                   fmt::format("give cuda:{} access to {}", context->ordinal(), named),
                   diagnostics)) {
    return {};
  }
  return mapping;
}

uint64_t whole_granules(uint64_t bytes, uint64_t granule) {
  constexpr uint64_t kMax = uint64_t{1} << 63;
  if (granule == 0 || granule > kMax || bytes > kMax - granule) return 0;
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace mscclc::cuda
