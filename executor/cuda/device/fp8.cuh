// Conversions of e4m3 and e5m2 by the instructions of sm_89 and up, a word at a time. They give the
// bits that interpreter/numbers.h says (fp8_test.cc tries all), except for the sign of a NaN that
// is read: no sum keeps that.
#pragma once

#include <cstdint>

#include "executor/interpreter/numbers.h"

namespace mscclc::cuda {

/// Are there instructions for T?
template <Dtype T>
constexpr bool converts_words() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return T == Dtype::e4m3 || T == Dtype::e5m2;
#else
  return false;
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890

/// The values of four codes. A NaN is canonical.
template <Dtype T>
__device__ inline float4 read_word(uint32_t codes) {
  uint32_t low, high;  // two f16 each
  if constexpr (T == Dtype::e4m3) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2;"
        " cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h;}"
        : "=r"(low), "=r"(high)
        : "r"(codes));
  } else {
    low = __byte_perm(codes, 0, 0x1404);  // e5m2 is the upper half of f16
    high = __byte_perm(codes, 0, 0x3424);
  }
  const auto widen = [](uint32_t halves, float& first, float& second) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(first), "=f"(second)
        : "r"(halves));
  };
  float4 values;
  widen(low, values.x, values.y);
  widen(high, values.z, values.w);
  return values;
}

/// The code of e5m2 for a value that is no number, where the instruction gives another; else the
/// low byte of `code`.
__device__ inline uint32_t correct_e5m2(uint32_t code, float value) {
  const uint32_t bits = __float_as_uint(value);
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7eu | (bits >> 31 << 7) : code & 0xff;
}

/// The codes of four values.
template <Dtype T>
__device__ inline uint32_t write_word(const float* values) {
  uint32_t codes;
  if constexpr (T == Dtype::e4m3) {
    asm("{.reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, %2, %1;"
        " cvt.rn.satfinite.e4m3x2.f32 h, %4, %3; mov.b32 %0, {l, h};}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {  // a NaN has lost its sign
      codes |= __float_as_uint(values[i]) >> 31 << (8 * i + 7);
    }
    return codes;
  } else {
    asm("{.reg .b16 l, h; cvt.rn.satfinite.e5m2x2.f32 l, %2, %1;"
        " cvt.rn.satfinite.e5m2x2.f32 h, %4, %3; mov.b32 %0, {l, h};}"
        : "=r"(codes)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
    uint32_t corrected = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
      corrected |= correct_e5m2(codes >> (8 * i), values[i]) << (8 * i);
    return corrected;
  }
}

#endif

}  // namespace mscclc::cuda
