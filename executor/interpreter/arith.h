// Reductions: what sum, min, max, prod and avg do to elements, and to rows of them.
//
// A sum is started from its first source, takes the others one by one in the order in which the op
// names them, or as a tree (trees.h), and is rounded to the data type once at the end; in a type
// that the processor does not compute in (f16, or the data type itself) it is rounded to that after
// every step, too. avg is a sum that is divided, in the accumulation type, where the plan says that
// it is complete. A float result that is zero is +0.0, as sentinel packets cannot carry -0.0: so
// its bits do not depend on how it travels. Nothing else depends on the signs of zeros that are
// added up: a zero of either sign changes no number, and what it gives with another zero, or in a
// product, is a zero. Integers wrap around; their division truncates. min and max give NaN if
// either side is one, and take -0 for less than +0, so they do not depend on the order.
#pragma once

#include <cstring>

#include "executor/interpreter/numbers.h"

namespace mscclc::device {

/// May elements of T be added up in A? The pairs that can_accumulate() (executor/lower.h) allows.
template <Dtype T, Dtype A>
constexpr bool sums_fit() {
  using Value = ValueOf<T>;
  using Sum = ValueOf<A>;
  constexpr bool same_kind = Element<T>::kIsFloat == Element<A>::kIsFloat &&
                             std::is_signed_v<Value> == std::is_signed_v<Sum>;
  if (!is_computed<A>()) {  // of these only f16 holds all values of others, those of fp8
    return A == T || (A == Dtype::f16 && sizeof(typename Element<T>::Bits) == 1 && same_kind);
  }
  constexpr bool own = Element<T>::kIsFloat ? A == Dtype::f32 && T != Dtype::f64 : A == T;
  return same_kind && (own || A == T || sizeof(Sum) > sizeof(Value));
}

/// Integers are computed without signs and without promotion to int, so that overflow wraps.
template <class A>
using Wrapping = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;

template <class A>
MSCCLC_HD inline A least(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    using B = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;
    // Equal floats differ at most in the sign of zero: keep the minus.
    const A same = std::bit_cast<A>(std::bit_cast<B>(a) | std::bit_cast<B>(b));
    return a < b ? a : b < a ? b : a == b ? same : a + b;
  } else {
    return a < b ? a : b;
  }
}

template <class A>
MSCCLC_HD inline A greatest(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    using B = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;
    const A same = std::bit_cast<A>(std::bit_cast<B>(a) & std::bit_cast<B>(b));
    return a > b ? a : b > a ? b : a == b ? same : a + b;
  } else {
    return a > b ? a : b;
  }
}

/// `a` and `b` under a reduction; avg adds.
template <ReduceOp R, class A>
MSCCLC_HD inline A combine(A a, A b) {
  if constexpr (kIsRounded<A>) {
    return A::of(combine<R>(a.value, b.value));
  } else if constexpr (R == ReduceOp::min) {
    return least(a, b);
  } else if constexpr (R == ReduceOp::max) {
    return greatest(a, b);
  } else if constexpr (std::is_floating_point_v<A>) {
    return R == ReduceOp::prod ? a * b : a + b;
  } else {
    const auto x = static_cast<Wrapping<A>>(a), y = static_cast<Wrapping<A>>(b);
    return static_cast<A>(R == ReduceOp::prod ? x * y : x + y);
  }
}

/// Element `i` of a row of bytes.
template <Dtype T>
MSCCLC_HD inline typename Element<T>::Bits element(const uint8_t* row, uint32_t i) {
  typename Element<T>::Bits bits;
  memcpy(&bits, row + i * sizeof bits, sizeof bits);
  return bits;
}

/// Starts sums with a row of `n` elements.
template <Dtype T, class A>
MSCCLC_HD inline void start_row(A* sums, const uint8_t* row, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) sums[i] = widen<T, A>(element<T>(row, i));
}

/// Adds a row of `n` elements to the sums.
template <Dtype T, class A, ReduceOp R>
MSCCLC_HD inline void combine_row(A* sums, const uint8_t* row, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) sums[i] = combine<R>(sums[i], widen<T, A>(element<T>(row, i)));
}

/// Adds sums of other sources to the sums.
template <ReduceOp R, class A>
MSCCLC_HD inline void merge_row(A* sums, const A* more, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) sums[i] = combine<R>(sums[i], more[i]);
}

/// Divides the sums by the number of contributions.
template <class A>
MSCCLC_HD inline void divide_row(A* sums, uint32_t n, uint32_t by) {
  // Wide enough that the divisor is itself: an 8-bit type cannot hold 200 ranks.
  using Wide = std::conditional_t<std::is_floating_point_v<A>, A,
                                  std::conditional_t<std::is_signed_v<A>, int64_t, uint64_t>>;
  for (uint32_t i = 0; i < n; ++i) {
    if constexpr (kIsRounded<A>) {
      sums[i] = A::of(sums[i].value / static_cast<float>(by));
    } else {
      sums[i] = static_cast<A>(static_cast<Wide>(sums[i]) / static_cast<Wide>(by));
    }
  }
}

/// The element that a reduction gives: rounded, and only then without -0.0, which rounding may
/// make.
template <Dtype T, class A>
MSCCLC_HD inline typename Element<T>::Bits result_of(A value) {
  const auto bits = narrow<T, A>(value);
  if constexpr (Element<T>::kIsFloat) return without_minus_zero(bits);
  return bits;
}

/// Makes elements of sums that are done.
template <Dtype T, class A>
MSCCLC_HD inline void finish_row(uint8_t* row, const A* sums, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    const auto bits = result_of<T, A>(sums[i]);
    memcpy(row + i * sizeof bits, &bits, sizeof bits);
  }
}

/// The same, for machines that take -0.0 out of whole words: only rounds.
template <Dtype T, class A>
MSCCLC_HD inline void round_row(uint8_t* row, const A* sums, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    const auto bits = narrow<T, A>(sums[i]);
    memcpy(row + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace mscclc::device
