// How values of row functions are stored, and rounded: each type's elements to f32 and back.
//
// Conversions are those of interpreter/numbers.h: to nearest, ties to even; e4m3 and e5m2 take what
// is beyond their largest value as that. A NaN is stored as one, all ones but the sign, which is
// what instructions of GPUs make of it. e8m0 holds powers of two, from 2^-127 (code 0) to 2^127;
// storing goes up to the next one, and 255 is NaN.
#pragma once

#include <type_traits>

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

/// Does a conversion take one instruction of this GPU?
template <class Element>
inline constexpr bool kConverts = false;
#if defined(__CUDA_ARCH__)
template <>
inline constexpr bool kConverts<device::Element<Dtype::f16>> = true;
#if __CUDA_ARCH__ >= 800
template <>
inline constexpr bool kConverts<device::Element<Dtype::bf16>> = true;
#endif
#if __CUDA_ARCH__ >= 890
template <>
inline constexpr bool kConverts<device::Element<Dtype::e4m3>> = true;
template <>
inline constexpr bool kConverts<device::Element<Dtype::e5m2>> = true;
#endif

/// store_two() of types that kConverts.
template <class Element>
__device__ inline uint32_t convert(float first, float second) {
  uint32_t both = 0;
  uint16_t bytes = 0;
  if constexpr (std::is_same_v<Element, device::Element<Dtype::f16>>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
  } else if constexpr (std::is_same_v<Element, device::Element<Dtype::bf16>>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
  } else if constexpr (std::is_same_v<Element, device::Element<Dtype::e4m3>>) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(second), "f"(first));
  }
  return bytes;
}
#endif

/// Bits of a stored value to its f32.
template <class Element>
MSCCLC_HD inline float load_as(typename Element::Bits bits) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Element, device::Element<Dtype::f16>>) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#endif
  return Element::read(bits);
}

/// The NaN that is stored.
template <class Element>
inline constexpr typename Element::Bits kStoredNan =
    static_cast<typename Element::Bits>(typename Element::Bits(~typename Element::Bits{0}) >> 1);
template <>
inline constexpr uint8_t kStoredNan<PowerOfTwo> = 255;

/// f32 to the bits that are stored. GPUs convert two numbers, here one and 0, in a fourth of the
/// time that one takes (sm_90: F2FP, F2F).
template <class Element>
MSCCLC_HD inline typename Element::Bits store_as(float value) {
#if defined(__CUDA_ARCH__)
  if constexpr (kConverts<Element>) {
    return static_cast<typename Element::Bits>(convert<Element>(value, 0.0f));
  }
#endif
  return is_nan(value) ? kStoredNan<Element> : Element::write(value);
}

/// Two of them, the first in the low bits.
template <class Element>
MSCCLC_HD inline uint32_t store_two(float first, float second) {
#if defined(__CUDA_ARCH__)
  if constexpr (kConverts<Element>) return convert<Element>(first, second);
#endif
  return uint32_t{store_as<Element>(first)} | uint32_t{store_as<Element>(second)}
                                                  << 8 * sizeof(typename Element::Bits);
}

/// The nearest number that the type has.
template <class Element>
MSCCLC_HD inline float round_to(float value) {
  return load_as<Element>(store_as<Element>(value));
}

}  // namespace mscclc::rows
