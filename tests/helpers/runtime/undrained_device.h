// A device that does not wait for its work, as a GPU while one of its streams is captured; and
// counts the memory that it has given.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc::testing {

class UndrainedDevice final : public ForwardingDevice {
 public:
  using Count = std::shared_ptr<std::atomic<int>>;

  /// `count`: pieces of memory for `counted` that have not been freed.
  UndrainedDevice(std::unique_ptr<Device> device, std::string counted, Count count)
      : ForwardingDevice(std::move(device)),
        counted_(std::move(counted)),
        count_(std::move(count)) {}
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    auto memory = ForwardingDevice::allocate(bytes, what, diagnostics);
    if (memory == nullptr || what != counted_) return memory;
    return std::make_unique<Counted>(std::move(memory), count_);
  }
  bool drain(Diagnostics& diagnostics) override {
    diagnostics.error("cuda", {}, "a stream is captured");
    return false;
  }

 private:
  class Counted final : public Memory {
   public:
    Counted(std::unique_ptr<Memory> memory, Count count)
        : memory_(std::move(memory)), count_(std::move(count)) {
      data_ = memory_->data();
      bytes_ = memory_->bytes();
      ++*count_;
    }
    ~Counted() override { --*count_; }

   private:
    const std::unique_ptr<Memory> memory_;
    const Count count_;
  };

  const std::string counted_;
  const Count count_;
};

}  // namespace mscclc::testing
