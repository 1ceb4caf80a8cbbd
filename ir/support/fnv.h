// FNV-1a of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo): a hash that is the same on all machines and
// in all versions. Not a strong one: two texts of one hash are easily found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mscclc {

class Fnv {
 public:
  void add(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<uint8_t>(c));
  }
  /// Its eight bytes, the lowest first.
  void add_number(uint64_t number) {
    for (uint32_t i = 0; i < 8; ++i, number >>= 8) add(static_cast<uint8_t>(number));
  }
  uint64_t value() const { return value_; }
  /// The value as 16 hexadecimal digits.
  std::string hex() const {
    std::string digits(16, '0');
    for (uint32_t i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[value_ >> (60 - 4 * i) & 15];
    return digits;
  }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace mscclc
