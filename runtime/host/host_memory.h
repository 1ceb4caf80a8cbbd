// Memory of the host device: pieces of mappings, and windows, which only name a peer's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/host/shared_memory.h"
#include "runtime/net/exposed_memory.h"

namespace mscclc {

class HostMemory : public NamedMemory {
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

/// Memory of a peer that is not mapped here: addresses that nothing else has, and that nobody can
/// access, so that blocks can name what the proxy is to write.
class HostWindow final : public HostMemory {
 public:
  /// nullptr: reported (out-of-memory).
  [[nodiscard]] static std::unique_ptr<HostWindow> reserve(uint64_t bytes, ExposedId exposed,
                                                           std::optional<DeviceKey> device_key,
                                                           Diagnostics& diagnostics);
  ~HostWindow() override;

 private:
  HostWindow(uint8_t* data, uint64_t bytes, ExposedId exposed, std::optional<DeviceKey> device_key)
      : HostMemory(nullptr, data, bytes, exposed, device_key) {}
};

}  // namespace mscclc
