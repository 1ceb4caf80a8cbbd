// A buffer of a rank on the simulator: bytes between two guards that nothing may write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mscclc {

class SimBuffer {
 public:
  SimBuffer() = default;
  ~SimBuffer();
  SimBuffer(SimBuffer&& other) noexcept { swap(other); }
  SimBuffer& operator=(SimBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  /// Makes it `bytes` long and sets the guards. Memory that is new holds zeros; memory that was
  /// there keeps what it holds, old guards become zeros. False: the system gives no more memory.
  bool resize(uint64_t bytes);
  /// Gives the memory back.
  void clear();
  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  bool contains(const uint8_t* address) const {
    return address >= data_ && address < data_ + bytes_;
  }
  /// True if bytes before (after) the buffer have been written.
  bool front_broken() const;
  bool back_broken() const;

  static constexpr size_t kGuard = 128;  ///< bytes of a guard, and alignment of data()

 private:
  void swap(SimBuffer& other);

  uint8_t* mapping_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0, capacity_ = 0;
};

}  // namespace mscclc
