// Equal pieces of device memory, for the programs of calls: given back and used again, so that a
// new call seldom asks the device for memory.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"

namespace mscclc {

class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  /// A slot; given back when its last owner has gone.
  using Slot = std::shared_ptr<uint8_t>;

  SlotPool(std::shared_ptr<Device> device, uint64_t slot_bytes);
  /// nullptr: reported.
  Slot take(Diagnostics& diagnostics);
  uint64_t slot_bytes() const { return slot_bytes_; }

 private:
  bool grow(Diagnostics& diagnostics);

  const std::shared_ptr<Device> device_;
  const uint64_t slot_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> slabs_;
  std::vector<uint8_t*> free_;
};

}  // namespace mscclc
