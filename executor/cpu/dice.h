// A generator of pseudo-random numbers that is the same everywhere: for schedules, and for tests.
#pragma once

#include <cstdint>

namespace mscclc {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  /// The next number of splitmix64.
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number below `n`, n > 0.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }

 private:
  uint64_t state_;
};

}  // namespace mscclc
