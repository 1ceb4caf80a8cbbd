// The arithmetic of row functions, one function an op: the evaluator of the host and emitted
// kernels both call these, so both give the same bits.
//
// Only operations that IEEE 754 rounds correctly (sums, products, quotients, square roots, fused
// products and sums) and operations on bits, with subnormals. No product and sum is contracted: on
// GPUs by intrinsics that no option changes, on the host by -ffp-contract=off of what includes
// this. What sign a NaN has differs from processor to processor; no function here depends on it,
// and what is stored is one NaN (row_values.h).
#pragma once

#include <bit>
#include <cstdint>

#include "executor/interpreter/layout.h"

namespace mscclc::rows {

MSCCLC_HD inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
MSCCLC_HD inline float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }
MSCCLC_HD inline bool is_nan(float x) { return (bits_of(x) & 0x7fffffff) > 0x7f800000; }

#if defined(__CUDA_ARCH__)
MSCCLC_HD inline float add(float a, float b) { return __fadd_rn(a, b); }
MSCCLC_HD inline float mul(float a, float b) { return __fmul_rn(a, b); }
MSCCLC_HD inline float div(float a, float b) { return __fdiv_rn(a, b); }
MSCCLC_HD inline float reciprocal(float x) { return __frcp_rn(x); }
MSCCLC_HD inline float call_sqrt(float x) { return __fsqrt_rn(x); }
MSCCLC_HD inline float call_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
#else
MSCCLC_HD inline float add(float a, float b) { return a + b; }
MSCCLC_HD inline float mul(float a, float b) { return a * b; }
MSCCLC_HD inline float div(float a, float b) { return a / b; }
MSCCLC_HD inline float reciprocal(float x) { return 1.0f / x; }
MSCCLC_HD inline float call_sqrt(float x) { return __builtin_sqrtf(x); }
MSCCLC_HD inline float call_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

MSCCLC_HD inline float negate(float x) { return float_of(bits_of(x) ^ 0x80000000); }
MSCCLC_HD inline float sub(float a, float b) { return add(a, negate(b)); }
MSCCLC_HD inline float call_abs(float x) { return float_of(bits_of(x) & 0x7fffffff); }
MSCCLC_HD inline float call_rsqrt(float x) { return reciprocal(call_sqrt(x)); }

/// x / n. A power of two, which is known where this is compiled, takes a product instead, of the
/// same bits.
MSCCLC_HD inline float div_by_count(float x, uint32_t n) {
  if (n != 0 && (n & (n - 1)) == 0) return mul(x, 1.0f / static_cast<float>(n));
  return div(x, static_cast<float>(n));
}

/// x / y by its reciprocal and two corrections, without a branch, where many numbers are divided by
/// one. `right` becomes false where the bits may be others: beyond 2^60, and below 2^-60 unless it
/// is a zero x. (Markstein 1990: what is within a unit of x / y is right after one correction by
/// the rounded reciprocal; the product may be two units off.)
MSCCLC_HD inline float quick_quotient(float x, float y, bool& right) {
  const auto fits = [](float value) {
    return (bits_of(value) & 0x7fffffff) - 0x21800000u <= 0x5d800000u - 0x21800000u;
  };
  const float inverse = reciprocal(y), first = mul(x, inverse);
  const float nearer = call_fma(call_fma(negate(first), y, x), inverse, first);
  const float result = call_fma(call_fma(negate(nearer), y, x), inverse, nearer);
  right = right && fits(y) && (fits(x) || x == 0);
  return x == 0 ? first : result;
}

/// Of equal numbers, which may be zeros of two signs, the one whose sign is less. Bits of a NaN
/// show nowhere: what is stored is always the same one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
MSCCLC_HD inline float call_min(float a, float b) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
}
MSCCLC_HD inline float call_max(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}
#else
MSCCLC_HD inline float call_min(float a, float b) {
  if (is_nan(a) || is_nan(b)) return float_of(0x7fc00000);
  if (a == b) return float_of(bits_of(a) | bits_of(b));
  return a < b ? a : b;
}
MSCCLC_HD inline float call_max(float a, float b) {
  if (is_nan(a) || is_nan(b)) return float_of(0x7fc00000);
  if (a == b) return float_of(bits_of(a) & bits_of(b));
  return a > b ? a : b;
}
#endif

/// Powers of two around abs(x); of infinity, zero and NaN these themselves.
MSCCLC_HD inline float call_pow2_down(float x) {
  uint32_t bits = bits_of(x) & 0x7fffffff;
  if (bits >= 0x7f800000) return float_of(bits);
  if (bits >= 0x00800000) return float_of(bits & 0x7f800000);
  while ((bits & (bits - 1)) != 0) bits &= bits - 1;  // a subnormal: its highest bit
  return float_of(bits);
}
MSCCLC_HD inline float call_pow2_up(float x) {
  const uint32_t bits = bits_of(x) & 0x7fffffff;
  const uint32_t down = bits_of(call_pow2_down(x));
  if (bits >= 0x7f800000 || bits == down) return float_of(bits);
  return float_of(bits >= 0x00800000 ? down + 0x00800000 : down << 1);
}

/// 2 to the power of n, -126 <= n <= 127.
MSCCLC_HD inline float power_of_two(int32_t n) {
  return float_of(static_cast<uint32_t>(n + 127) << 23);
}

/// e to the power of x = n ln 2 + r, with n whole and abs(r) at most half of ln 2: 2^n by its bits,
/// e^r by eight terms of its series. Beyond the clamps the result is infinity or zero anyway.
MSCCLC_HD inline float call_exp(float x) {
  if (is_nan(x)) return x;
  const float clamped = call_max(call_min(x, 90.0f), -110.0f);
  // Adding and subtracting 1.5 * 2^23 rounds to a whole number. ln 2 in two pieces, of which n
  // times the first is exact.
  const float n = sub(call_fma(clamped, 0x1.715476p+0f, 0x1.8p+23f), 0x1.8p+23f);
  const float high = call_fma(n, -0x1.62e4p-1f, clamped);
  const float r = call_fma(n, -0x1.7f7d1cp-20f, high);
  float sum = 0x1.a01a02p-13f;              // 1/5040
  sum = call_fma(sum, r, 0x1.6c16c2p-10f);  // 1/720
  sum = call_fma(sum, r, 0x1.111112p-7f);   // 1/120
  sum = call_fma(sum, r, 0x1.555556p-5f);   // 1/24
  sum = call_fma(sum, r, 0x1.555556p-3f);   // 1/6
  sum = call_fma(sum, r, 0.5f);
  sum = call_fma(sum, r, 1.0f);
  sum = call_fma(sum, r, 1.0f);
  const int32_t whole = static_cast<int32_t>(n), half = whole / 2;
  return mul(mul(sum, power_of_two(half)), power_of_two(whole - half));
}

// Reductions, a pair of values at a time; none(): which changes none.
struct ReduceSum {
  MSCCLC_HD static float none() { return -0.0f; }
  MSCCLC_HD static float of(float a, float b) { return add(a, b); }
};
struct ReduceMax {
  MSCCLC_HD static float none() { return float_of(0xff800000); }
  MSCCLC_HD static float of(float a, float b) { return call_max(a, b); }
};
struct ReduceMin {
  MSCCLC_HD static float none() { return float_of(0x7f800000); }
  MSCCLC_HD static float of(float a, float b) { return call_min(a, b); }
};

}  // namespace mscclc::rows
