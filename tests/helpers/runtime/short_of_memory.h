// A device that has no memory for one purpose.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc::testing {

class ShortOfMemory final : public ForwardingDevice {
 public:
  /// `what`: Device::allocate().
  ShortOfMemory(std::shared_ptr<Device> device, std::string what)
      : ForwardingDevice(std::move(device)), what_(std::move(what)) {}
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    if (what != what_) return ForwardingDevice::allocate(bytes, what, diagnostics);
    diagnostics.error("out-of-memory", {}, "there is no memory for " + what);
    return nullptr;
  }

 private:
  const std::string what_;
};

}  // namespace mscclc::testing
