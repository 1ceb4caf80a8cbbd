// Memory of the host device: pieces of mappings, and windows, which only name a peer's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/api/device.h"
#include "runtime/host/shared_memory.h"

namespace mscclc {

/// What a lane of messages calls memory of the rank that it leads to (exposed_memory.h).
using ExposedId = uint64_t;

class HostMemory : public Memory {
 public:
  /// A piece of a mapping, or (no mapping) of memory that another owner frees. `exposed`: what its
  /// rank calls it, if it is a peer's that takes messages.
  HostMemory(std::shared_ptr<SharedMapping> mapping, uint8_t* data, uint64_t bytes,
             std::optional<ExposedId> exposed = std::nullopt)
      : mapping_(std::move(mapping)), exposed_(exposed) {
    data_ = data;
    bytes_ = bytes;
  }
  std::optional<ExposedId> exposed() const { return exposed_; }

 private:
  const std::shared_ptr<SharedMapping> mapping_;
  const std::optional<ExposedId> exposed_;
};

/// Memory of a peer that is not mapped here: addresses that nothing else has, and that nobody can
/// access, so that blocks can name what the proxy is to write.
class HostWindow final : public HostMemory {
 public:
  /// nullptr: reported (out-of-memory).
  [[nodiscard]] static std::unique_ptr<HostWindow> reserve(uint64_t bytes, ExposedId exposed,
                                                           Diagnostics& diagnostics);
  ~HostWindow() override;

 private:
  HostWindow(uint8_t* data, uint64_t bytes, ExposedId exposed)
      : HostMemory(nullptr, data, bytes, exposed) {}
};

}  // namespace mscclc
