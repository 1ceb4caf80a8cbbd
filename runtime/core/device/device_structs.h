// Structs on their way to device memory: arrays are laid one after the other, as they will lie
// there, and written at once. Their addresses there are known before.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "executor/launch.h"
#include "ir/support/precondition.h"
#include "runtime/api/device.h"

namespace mscclc {

class DeviceStructs {
 public:
  static constexpr uint64_t kAlign = 16;
  /// `target`: where the image will lie; `capacity`: bytes there.
  DeviceStructs(uint8_t* target, uint64_t capacity) : target_(target), capacity_(capacity) {}

  /// Bytes that an array takes.
  template <class T>
  static uint64_t bytes_of(uint64_t count) {
    return (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  }
  /// Appends an array; returns its address in the target. REQUIRES: room for it.
  template <class T>
  T* add(std::span<const T> values) {
    return reinterpret_cast<T*>(append(values.data(), values.size_bytes()));
  }
  template <class T>
  T* add(const std::vector<T>& values) {
    return add(std::span<const T>(values));
  }
  [[nodiscard]] bool write(Device& device, Diagnostics& diagnostics) const {
    return device.write(target_, bytes_.data(), bytes_.size(), diagnostics);
  }
  uint64_t bytes() const { return bytes_.size(); }
  uint64_t capacity() const { return capacity_; }

 private:
  uint8_t* append(const void* from, uint64_t bytes) {
    precondition(bytes_of<uint8_t>(bytes) <= capacity_ - bytes_.size());
    const uint64_t at = bytes_.size();
    bytes_.resize(at + (bytes + kAlign - 1) / kAlign * kAlign);
    if (bytes > 0) std::memcpy(bytes_.data() + at, from, bytes);
    return target_ + at;
  }

  uint8_t* const target_;
  const uint64_t capacity_;
  std::vector<uint8_t> bytes_;
};

}  // namespace mscclc
