// How values of row functions are stored, and rounded: each type's elements to f32 and back.
//
// Conversions are those of interpreter/numbers.h: to nearest, ties to even; e4m3 and e5m2 take what
// is beyond their largest value as that. A NaN is stored as one, the positive quiet one. e8m0 holds
// powers of two, from 2^-127 (code 0) to 2^127; storing goes up to the next one, and 255 is NaN.
#pragma once

#include "executor/interpreter/numbers.h"
#include "executor/rows/row_math.h"

namespace mscclc::rows {

/// Powers of two in a byte, without a sign.
struct PowerOfTwo {
  using Bits = uint8_t;
  MSCCLC_HD static float read(Bits bits) {
    if (bits == 255) return float_of(0x7fc00000);
    return float_of(bits == 0 ? 0x00400000 : uint32_t{bits} << 23);
  }
  MSCCLC_HD static Bits write(float value) {
    if (is_nan(value)) return 255;
    const uint32_t exponent = bits_of(call_pow2_up(value)) >> 23;
    return static_cast<Bits>(exponent > 254 ? 254 : exponent);
  }
};

/// Bits of a stored value to its f32.
template <class Element>
MSCCLC_HD inline float load_as(typename Element::Bits bits) {
  return Element::read(bits);
}

/// f32 to the bits that are stored.
template <class Element>
MSCCLC_HD inline typename Element::Bits store_as(float value) {
  return Element::write(is_nan(value) ? float_of(0x7fc00000) : value);
}

/// The nearest number that the type has.
template <class Element>
MSCCLC_HD inline float round_to(float value) {
  return load_as<Element>(store_as<Element>(value));
}

}  // namespace mscclc::rows
