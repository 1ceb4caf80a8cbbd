// Memory of the host device: pieces of mappings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/devices/host/shared_memory.h"
#include "runtime/network/exposed_memory.h"

namespace mscclc {

class HostMemory final : public NamedMemory {
 public:
  /// A piece of a mapping, or (no mapping) of memory that another owner frees. `exposed`: what its
  /// rank calls it, if it is a peer's that lanes can write.
  HostMemory(std::shared_ptr<SharedMapping> mapping, uint8_t* data, uint64_t bytes,
             std::optional<ExposedId> exposed = std::nullopt,
             std::optional<DeviceKey> device_key = std::nullopt)
      : NamedMemory(exposed, device_key), mapping_(std::move(mapping)) {
    data_ = data;
    bytes_ = bytes;
  }

 private:
  const std::shared_ptr<SharedMapping> mapping_;
};

}  // namespace mscclc
