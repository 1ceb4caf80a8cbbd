#include "executor/simulator/machine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace mscclc {
namespace {

constexpr uint8_t kGuardByte = 0xa5;
/// Buffers of such sizes are asked for in huge pages: fewer page faults. Not larger ones, of which
/// a test may touch only a little.
constexpr uint64_t kHuge = 2 << 20, kMostHuge = 1 << 30;

bool broken(const uint8_t* guard) {
  return std::any_of(guard, guard + SimBuffer::kGuard,
                     [](uint8_t byte) { return byte != kGuardByte; });
}

uint64_t mapped_bytes(uint64_t capacity) { return capacity + 2 * SimBuffer::kGuard; }

}  // namespace

SimBuffer::~SimBuffer() { clear(); }

void SimBuffer::swap(SimBuffer& other) {
  std::swap(mapping_, other.mapping_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(capacity_, other.capacity_);
}

void SimBuffer::clear() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes(capacity_));
  mapping_ = data_ = nullptr;
  bytes_ = capacity_ = 0;
}

// Pages are asked for, not taken: what is never touched costs nothing.
bool SimBuffer::resize(uint64_t bytes) {
  if (mapping_ != nullptr && bytes <= capacity_) {
    std::memset(data_ + bytes_, 0, kGuard);
  } else {
    clear();
    void* mapping = mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return false;
    if (bytes >= kHuge && bytes <= kMostHuge) madvise(mapping, mapped_bytes(bytes), MADV_HUGEPAGE);
    mapping_ = static_cast<uint8_t*>(mapping);
    data_ = mapping_ + kGuard;
    capacity_ = bytes;
  }
  bytes_ = bytes;
  std::memset(data_ - kGuard, kGuardByte, kGuard);
  std::memset(data_ + bytes_, kGuardByte, kGuard);
  return true;
}

bool SimBuffer::front_broken() const { return data_ != nullptr && broken(data_ - kGuard); }
bool SimBuffer::back_broken() const { return data_ != nullptr && broken(data_ + bytes_); }

}  // namespace mscclc
