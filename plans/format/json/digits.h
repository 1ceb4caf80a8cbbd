// Decimal digits of unsigned numbers, two at a time. Plans are made of small numbers, so those come
// first.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>

namespace mscclc {

inline constexpr char kDigitPairs[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/// Writes `value` at `to` and returns the end; at most 20 characters.
inline char* write_digits64(char* to, uint64_t value) {
  return std::to_chars(to, to + 20, value).ptr;
}

/// Writes `value` at `to` and returns the end; at most 10 characters.
inline char* write_digits(char* to, uint32_t value) {
  if (value < 10) {
    *to = static_cast<char>('0' + value);
    return to + 1;
  }
  if (value < 100) {
    std::memcpy(to, kDigitPairs + 2 * value, 2);
    return to + 2;
  }
  if (value < 1000) {
    *to = static_cast<char>('0' + value / 100);
    std::memcpy(to + 1, kDigitPairs + 2 * (value % 100), 2);
    return to + 3;
  }
  if (value < 10000) {
    std::memcpy(to, kDigitPairs + 2 * (value / 100), 2);
    std::memcpy(to + 2, kDigitPairs + 2 * (value % 100), 2);
    return to + 4;
  }
  return write_digits64(to, value);
}

}  // namespace mscclc
