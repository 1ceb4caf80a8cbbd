#include "executor/simulator/machine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace mscclc {
namespace {

constexpr uint8_t kGuardByte = 0xa5;
/// Buffers of such sizes are asked for in huge pages: fewer page faults. Not larger ones, of which
/// a test may touch only a little.
constexpr uint64_t kHuge = 2 << 20, kMaxHuge = 1 << 30;

bool broken(const uint8_t* guard) {
  return std::any_of(guard, guard + SimBuffer::kGuard,
                     [](uint8_t byte) { return byte != kGuardByte; });
}

uint64_t mapped_bytes(uint64_t capacity) { return capacity + 2 * SimBuffer::kGuard; }

constexpr uint64_t kPage = 4096;
/// Small buffers come from the heap: where many small plans are run, mapping memory would be half
/// of the time.
constexpr uint64_t kSmall = 512 << 10;
bool small(uint64_t capacity) { return mapped_bytes(capacity) <= kSmall; }

/// Zeros, at the begin of a page; nullptr: there is no memory.
void* map(uint64_t capacity) {
  const uint64_t bytes = mapped_bytes(capacity);
  if (small(capacity)) {
    void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    return memory == nullptr ? nullptr : std::memset(memory, 0, bytes);
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (capacity >= kHuge && capacity <= kMaxHuge) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

void unmap(void* memory, uint64_t capacity) {
  if (small(capacity)) return std::free(memory);
  munmap(memory, mapped_bytes(capacity));
}

}  // namespace

SimBuffer::~SimBuffer() { clear(); }

void SimBuffer::swap(SimBuffer& other) {
  std::swap(mapping_, other.mapping_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(capacity_, other.capacity_);
}

void SimBuffer::clear() {
  if (mapping_ != nullptr) unmap(mapping_, capacity_);
  mapping_ = data_ = nullptr;
  bytes_ = capacity_ = 0;
}

// Pages are asked for, not taken: what is never touched costs nothing.
bool SimBuffer::resize(uint64_t bytes) {
  if (mapping_ != nullptr && bytes <= capacity_) {
    std::memset(data_ + bytes_, 0, kGuard);
  } else {
    clear();
    mapping_ = static_cast<uint8_t*>(map(bytes));
    if (mapping_ == nullptr) return false;
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
