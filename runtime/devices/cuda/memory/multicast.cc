#include "runtime/devices/cuda/memory/multicast.h"

#include <fmt/format.h>

namespace mscclc::cuda {
namespace {

abi::MulticastProperties properties_of_team(uint32_t devices, uint64_t bytes, int handle_types) {
  return {devices, bytes, static_cast<unsigned long long>(handle_types), 0};
}

}  // namespace

uint64_t multicast_granule(const PrimaryContext& context, uint32_t devices,
                           Diagnostics& diagnostics) {
  // The granule does not depend on the size, but a size must be named.
  constexpr uint64_t kSomeBytes = 2u << 20;
  const abi::MulticastProperties properties =
      properties_of_team(devices, kSomeBytes, abi::kPosixFd);
  size_t bytes = 0;
  if (!context.ok(
          context.driver().MulticastGetGranularity(&bytes, &properties, abi::kMinimumGranularity),
          "get the granularity of multicast", diagnostics)) {
    return 0;
  }
  return bytes;
}

std::unique_ptr<MulticastObject> MulticastObject::create(const SharedContext& context,
                                                         uint32_t devices, uint64_t bytes,
                                                         int& handle_types,
                                                         Diagnostics& diagnostics) {
  // As for memory: fabric handles are often there in name only.
  std::vector<int> sets;
  const bool fd = context->attribute(abi::kPosixFdSupported) != 0;
  const bool fabric = context->attribute(abi::kFabricSupported) != 0;
  if (fd && fabric) sets.push_back(abi::kPosixFd | abi::kFabric);
  if (fd) sets.push_back(abi::kPosixFd);
  if (fabric && !fd) sets.push_back(abi::kFabric);
  for (size_t i = 0; i < sets.size(); ++i) {
    const abi::MulticastProperties properties = properties_of_team(devices, bytes, sets[i]);
    abi::Handle handle = 0;
    const abi::Result result = context->driver().MulticastCreate(&handle, &properties);
    if (result == abi::kSuccess) {
      handle_types = sets[i];
      return std::make_unique<MulticastObject>(context, HandleReference(context, handle), bytes);
    }
    if (i + 1 < sets.size()) continue;
    (void)context->ok(result,
                      fmt::format("create multicast for {} GPUs ({} bytes)", devices, bytes),
                      diagnostics);
    return nullptr;
  }
  diagnostics.error("cuda", {}, "cannot create multicast: there is no handle type to share it by");
  return nullptr;
}

MulticastObject::~MulticastObject() {
  const OutsideCapture outside(context_->driver());
  mapping_ = {};
  for (const Binding& binding : bindings_) {
    context_->driver().MulticastUnbind(reference_.get(), context_->ordinal(), binding.offset,
                                       binding.bytes);
  }
}

bool MulticastObject::add_device(Diagnostics& diagnostics) {
  return context_->ok(context_->driver().MulticastAddDevice(reference_.get(), context_->ordinal()),
                      fmt::format("add cuda:{} to a multicast team", context_->ordinal()),
                      diagnostics);
}

bool MulticastObject::bind(const HandleReference& memory, uint64_t memory_offset, uint64_t bytes,
                           uint64_t offset, Diagnostics& diagnostics) {
  bindings_.reserve(bindings_.size() + 1);  // what is bound will be known
  if (!context_->ok(context_->driver().MulticastBindMem(reference_.get(), offset, memory.get(),
                                                        memory_offset, bytes, 0),
                    fmt::format("bind {} bytes to multicast", bytes), diagnostics)) {
    return false;
  }
  bindings_.push_back({offset, bytes});
  return true;
}

bool MulticastObject::map(uint64_t granule, Diagnostics& diagnostics) {
  mapping_ = Mapping::create(context_, reference_.get(), bytes_, "multicast", diagnostics, granule);
  return static_cast<bool>(mapping_);
}

}  // namespace mscclc::cuda
