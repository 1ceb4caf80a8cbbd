// The elements of every data type of dtypes.def: how their bits are read and written.
//
// Conversions round to nearest, ties to even. A NaN stays a NaN (the canonical quiet one, with its
// sign). Where a value is beyond the largest finite one: f16 and bf16 give infinity, e4m3, e5m2 and
// e4m3b15 their largest (448, 57344, 0.9375), for infinity too: so do CUDA's conversions, and NCCL.
// Integers narrow by dropping high bits. The same source runs on host and device, so both give the
// same bits.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "executor/interpreter/layout.h"

namespace mscclc::device {

/// A float format of at most 16 bits; `kTop` is the largest finite code without its sign. `kMax`:
/// of what is beyond that.
template <int kExponent, int kMantissa, int kBias, uint32_t kTop, bool kInfinity, uint32_t kMax>
struct SmallFloat {
  using Bits = std::conditional_t<(kExponent + kMantissa > 7), uint16_t, uint8_t>;
  static constexpr bool kIsFloat = true;
  static constexpr uint32_t kSign = 1u << (kExponent + kMantissa);
  static constexpr uint32_t kNan =
      kInfinity ? ((2u << kExponent) - 1) << (kMantissa - 1) : kSign - 1;

  MSCCLC_HD static float read(Bits bits) {
    const uint32_t magnitude = bits & (kSign - 1);
    const uint32_t sign = static_cast<uint32_t>(bits & kSign) << (31 - kExponent - kMantissa);
    // The code as a float that is too small by a power of two: exact, subnormals too.
    float value = std::bit_cast<float>(magnitude << (23 - kMantissa)) *
                  std::bit_cast<float>(uint32_t{254 - kBias} << 23);
    uint32_t special = 0x7fc00000;
    if (kInfinity && magnitude == kTop + 1) special = 0x7f800000;
    const uint32_t out = magnitude > kTop ? special : std::bit_cast<uint32_t>(value);
    return std::bit_cast<float>(out | sign);
  }

  MSCCLC_HD static Bits write(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 31) * kSign, magnitude = bits & 0x7fffffff;
    // Normal results: change the bias, add what rounds half to even, drop the low bits.
    constexpr uint32_t kDrop = 23 - kMantissa;
    const uint32_t odd = (magnitude >> kDrop) & 1;
    uint32_t code =
        (magnitude - (uint32_t{127 - kBias} << 23) + ((1u << (kDrop - 1)) - 1) + odd) >> kDrop;
    // Subnormal results: an addition rounds at the right bit.
    constexpr uint32_t kMagic = uint32_t{127 + 24 - kBias - kMantissa} << 23;
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    const uint32_t small = std::bit_cast<uint32_t>(shifted) - kMagic;
    code = magnitude < (uint32_t{128 - kBias} << 23) ? small : code;
    code = code > kTop || magnitude >= 0x7f800000 ? kMax : code;
    code = magnitude > 0x7f800000 ? kNan : code;
    return static_cast<Bits>(code | sign);
  }
};

/// bf16 is the upper half of a float.
struct BrainFloat {
  using Bits = uint16_t;
  static constexpr bool kIsFloat = true;
  MSCCLC_HD static float read(Bits bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  MSCCLC_HD static Bits write(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t nan = (bits >> 31 << 15) | 0x7fc0;
    return static_cast<Bits>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
};

/// Types that the processor computes in: read and write only copy bits.
template <class T, class B>
struct Plain {
  using Bits = B;
  static constexpr bool kIsFloat = std::is_floating_point_v<T>;
  MSCCLC_HD static T read(Bits bits) { return std::bit_cast<T>(bits); }
  MSCCLC_HD static Bits write(T value) { return std::bit_cast<Bits>(value); }
};

/// Element<Dtype::f16>::read(bits), write(value), Bits.
template <Dtype>
struct Element;
// clang-format off
template <> struct Element<Dtype::f32> : Plain<float, uint32_t> {};
template <> struct Element<Dtype::f64> : Plain<double, uint64_t> {};
template <> struct Element<Dtype::i32> : Plain<int32_t, uint32_t> {};
template <> struct Element<Dtype::u32> : Plain<uint32_t, uint32_t> {};
template <> struct Element<Dtype::i64> : Plain<int64_t, uint64_t> {};
template <> struct Element<Dtype::u64> : Plain<uint64_t, uint64_t> {};
template <> struct Element<Dtype::i8> : Plain<int8_t, uint8_t> {};
template <> struct Element<Dtype::u8> : Plain<uint8_t, uint8_t> {};
template <> struct Element<Dtype::bf16> : BrainFloat {};
template <> struct Element<Dtype::f16> : SmallFloat<5, 10, 15, 0x7bff, true, 0x7c00> {};
template <> struct Element<Dtype::e5m2> : SmallFloat<5, 2, 15, 0x7b, true, 0x7b> {};
template <> struct Element<Dtype::e4m3> : SmallFloat<4, 3, 7, 0x7e, false, 0x7e> {};
template <> struct Element<Dtype::e4m3b15> : SmallFloat<4, 3, 15, 0x77, false, 0x77> {};
// clang-format on

/// The type in which an element's value is exact: what read() gives.
template <Dtype T>
using ValueOf = decltype(Element<T>::read(typename Element<T>::Bits{}));

#define DTYPE(name, bytes, kind, accumulate, aliases)           \
  static_assert(sizeof(Element<Dtype::name>::Bits) == (bytes)); \
  static_assert(Element<Dtype::name>::kIsFloat == (DtypeKind::kind == DtypeKind::kFloat));
#include "ir/ops/dtypes.def"
#undef DTYPE

/// A sum in a float format that the processor does not compute in: its value, rounded to the format
/// after every step. (A float has more than twice the digits, so rounding twice is rounding once.)
template <Dtype A>
struct RoundedSum {
  float value;
  MSCCLC_HD static RoundedSum of(float value) {
    return {Element<A>::read(Element<A>::write(value))};
  }
};
template <class A>
inline constexpr bool kIsRounded = false;
template <Dtype A>
inline constexpr bool kIsRounded<RoundedSum<A>> = true;

/// Does the processor compute in this type?
template <Dtype A>
constexpr bool is_computed() {
  return sizeof(typename Element<A>::Bits) == sizeof(ValueOf<A>);
}
/// Sums that are taken in A.
template <Dtype A>
using SumOf = std::conditional_t<is_computed<A>(), ValueOf<A>, RoundedSum<A>>;

/// A float from which any narrower format rounds as it would from `value` itself: inexact results
/// are made odd, so that rounding twice cannot hit a tie that was none.
MSCCLC_HD inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool inexact = back != value && value == value;
  const bool away = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  bits -= inexact && away ? 1 : 0;
  bits |= inexact ? 1 : 0;
  return std::bit_cast<float>(bits);
}

/// An element's value in accumulation type A.
template <Dtype T, class A>
MSCCLC_HD inline A widen(typename Element<T>::Bits bits) {
  if constexpr (kIsRounded<A>) {
    return {Element<T>::read(bits)};
  } else {
    return static_cast<A>(Element<T>::read(bits));
  }
}

/// The element of type T nearest to a value of accumulation type A.
template <Dtype T, class A>
MSCCLC_HD inline typename Element<T>::Bits narrow(A value) {
  using V = ValueOf<T>;
  if constexpr (kIsRounded<A>) {
    return Element<T>::write(value.value);
  } else if constexpr (std::is_same_v<A, double> && sizeof(typename Element<T>::Bits) < 4) {
    return Element<T>::write(round_to_odd(value));
  } else {
    return Element<T>::write(static_cast<V>(value));
  }
}

/// An element's bits, with +0.0 for -0.0.
template <class Bits>
MSCCLC_HD inline Bits without_minus_zero(Bits bits) {
  constexpr Bits kMinusZero = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  return bits == kMinusZero ? Bits{0} : bits;
}

}  // namespace mscclc::device
