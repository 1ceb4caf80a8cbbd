#include "runtime/core/collectives/own_memory.h"

#include <bit>

namespace mscclc {

uint8_t* OwnMemory::take(Device& device, uint64_t bytes, Diagnostics& diagnostics) {
  if (pieces_.empty() || pieces_.back()->bytes() < bytes) {
    auto more = device.allocate(std::bit_ceil(bytes), "buffers of collectives", diagnostics);
    if (more == nullptr) return nullptr;
    pieces_.push_back(std::move(more));
  }
  return pieces_.back()->data();
}

uint64_t OwnMemory::bytes() const {
  uint64_t all = 0;
  for (const std::unique_ptr<Memory>& piece : pieces_) all += piece->bytes();
  return all;
}

}  // namespace mscclc
