// Exact sums of floats, rounded once: the same bits in whatever order the sources come.
//
// A sum is a double, to which sources are added with the error of each addition (TwoSum: D. Knuth,
// The Art of Computer Programming 2, 1997, 4.2.2; J. Shewchuk, "Adaptive precision floating-point
// arithmetic", 1997). Mostly there are no errors, and the double is the sum. Those that there are
// go into a long accumulator, an integer as wide as all sums (U. Kulisch, "Computer arithmetic and
// validity", 2008; with TwoSum before it: S. Collange et al., "Numerical reproducibility for the
// parallel reduction on multi- and many-core architectures", 2015). Nothing is lost in it, so the
// order does not matter.
//
// What comes out is a double that is rounded to odd: cut off, and its last bit set if anything was
// cut off. From that every type with two bits less or more is rounded as from the sum itself
// (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008): f32 and all
// narrower types have 29 bits less. Sums of f64 are rounded to nearest at once.
//
// Infinities and NaNs give what additions give: a NaN and a sum of both infinities are NaN. Beyond
// the largest value of a type it is as with any other sum (numbers.h). Averages are the exact sum,
// rounded to the type that elements are added up in, and divided there.
#pragma once

#include "executor/interpreter/arith.h"
#include "ir/ops/summations.h"

#if defined(__FAST_MATH__)
#error "sums would not be exact"
#endif

namespace mscclc::device {

/// How many sources an exact sum has at most, as a power of two.
inline constexpr uint32_t kExactSourcesLog = 12;
static_assert(info(Summation::exact).most_sources == 1u << kExactSourcesLog);

/// Where the bits of a type's values lie: multiples of 2^kLeast, below 2^kEnd.
template <int least, int end>
struct BitRange {
  static constexpr int kLeast = least, kEnd = end;
};
template <Dtype>
struct RangeOf;
// clang-format off
template <> struct RangeOf<Dtype::f64> : BitRange<-1074, 1024> {};
template <> struct RangeOf<Dtype::f32> : BitRange<-149, 128> {};
template <> struct RangeOf<Dtype::bf16> : BitRange<-133, 128> {};
template <> struct RangeOf<Dtype::f16> : BitRange<-24, 16> {};
template <> struct RangeOf<Dtype::e5m2> : BitRange<-16, 16> {};
template <> struct RangeOf<Dtype::e4m3> : BitRange<-9, 9> {};
template <> struct RangeOf<Dtype::e4m3b15> : BitRange<-17, 1> {};
// clang-format on

/// Are all sums of elements of T doubles?
template <Dtype T>
constexpr bool fits_double() {
  return RangeOf<T>::kEnd - RangeOf<T>::kLeast + static_cast<int>(kExactSourcesLog) <= 53;
}

/// Is an exact reduction another thing than any other? Sums and averages of floats are.
MSCCLC_HD inline bool differs_if_exact(bool is_float, ReduceOp reduce) {
  return is_float && (reduce == ReduceOp::sum || reduce == ReduceOp::avg);
}

/// A sum of multiples of 2^kLeast, as an integer with sign in two's complement, the lowest word
/// first.
template <Dtype T>
class LongSum {
 public:
  /// A bit for the sign; one more source, as what a double holds may have the other sign.
  static constexpr int kBits =
      RangeOf<T>::kEnd - RangeOf<T>::kLeast + static_cast<int>(kExactSourcesLog) + 2;
  static constexpr uint32_t kWords = (kBits + 63) / 64;

  MSCCLC_HD void clear() {
    for (uint64_t& word : words_) word = 0;
  }

  /// REQUIRES: a finite multiple of 2^kLeast; the sum stays below 2^kEnd as often as there are
  /// sources.
  MSCCLC_HD void add(double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    uint64_t digits = bits & kFraction;
    if (exponent != 0) digits |= kOne;
    int shift = (exponent == 0 ? 1 : exponent) - kBias - RangeOf<T>::kLeast;
    if (shift < 0) {  // digits that are zeros
      digits = shift < -63 ? 0 : digits >> -shift;
      shift = 0;
    }
    const uint32_t at = static_cast<uint32_t>(shift) / 64, by = static_cast<uint32_t>(shift) % 64;
    const uint64_t low = digits << by, high = by == 0 ? 0 : digits >> (64 - by);
    if ((bits >> 63) == 0) {
      add_words(at, low, high);
    } else {
      subtract_words(at, low, high);
    }
  }

  /// The sum, rounded to odd, or to nearest with ties to even.
  MSCCLC_HD double rounded(bool to_nearest) {
    const bool negative = words_[kWords - 1] >> 63 != 0;
    if (negative) negate();
    uint32_t top = kWords - 1;
    while (top > 0 && words_[top] == 0) --top;
    const int length = static_cast<int>(64 * top) + length_of(words_[top]);
    const uint64_t bits = length <= 53 ? small(words_[0]) : large(length, to_nearest);
    return std::bit_cast<double>(bits | uint64_t{negative} << 63);
  }

 private:
  static constexpr uint64_t kOne = uint64_t{1} << 52, kFraction = kOne - 1;
  static constexpr int kBias = 1075;  ///< of the last digit

  MSCCLC_HD void add_words(uint32_t at, uint64_t low, uint64_t high) {
    words_[at] += low;
    uint64_t carry = words_[at] < low ? 1 : 0;
    if (++at == kWords) return;
    carry += high;  // not all bits of it are set
    for (; carry != 0 && at < kWords; ++at) {
      words_[at] += carry;
      carry = words_[at] < carry ? 1 : 0;
    }
  }
  MSCCLC_HD void subtract_words(uint32_t at, uint64_t low, uint64_t high) {
    uint64_t borrow = words_[at] < low ? 1 : 0;
    words_[at] -= low;
    if (++at == kWords) return;
    borrow += high;
    for (; borrow != 0 && at < kWords; ++at) {
      const bool more = words_[at] < borrow;
      words_[at] -= borrow;
      borrow = more ? 1 : 0;
    }
  }
  /// How many bits a number has.
  MSCCLC_HD static int length_of(uint64_t number) {
    int length = 0;
    for (int step = 32; step > 0; step /= 2) {
      if (number >> step == 0) continue;
      number >>= step;
      length += step;
    }
    return length + (number != 0 ? 1 : 0);
  }
  MSCCLC_HD void negate() {
    bool carry = true;
    for (uint64_t& word : words_) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }

  /// Of a number of at most 53 bits, which a double holds.
  MSCCLC_HD static uint64_t small(uint64_t digits) {
    if constexpr (RangeOf<T>::kLeast == 1 - kBias) {
      return digits;  // the code of a double counts its last digits
    } else {
      const double scale = std::bit_cast<double>(uint64_t{RangeOf<T>::kLeast + 1023} << 52);
      return std::bit_cast<uint64_t>(static_cast<double>(digits) * scale);
    }
  }
  /// Of the `length` bits that there are, more than 53.
  MSCCLC_HD uint64_t large(int length, bool to_nearest) const {
    const int dropped = length - 53;
    const uint32_t at = static_cast<uint32_t>(dropped) / 64,
                   by = static_cast<uint32_t>(dropped) % 64;
    uint64_t digits = words_[at] >> by;
    if (by > 11 && at + 1 < kWords) digits |= words_[at + 1] << (64 - by);
    digits &= kOne | kFraction;
    bool below = by > 1 && (words_[at] & ((uint64_t{1} << (by - 1)) - 1)) != 0;
    const uint64_t half_word = by > 0 ? words_[at] >> (by - 1) : words_[at - 1] >> 63;
    const bool half = (half_word & 1) != 0;
    for (uint32_t i = 0; i < at; ++i) {
      const uint64_t word = by == 0 && i + 1 == at ? words_[i] << 1 : words_[i];
      below |= word != 0;
    }
    const int exponent = dropped + RangeOf<T>::kLeast + kBias;
    const uint64_t code = (static_cast<uint64_t>(exponent - 1) << 52) + digits;
    if (!to_nearest) return code | (half || below ? 1 : 0);
    const uint64_t nearest = code + (half && (below || (digits & 1) != 0) ? 1 : 0);
    return exponent > 2046 || nearest > kInfinity ? kInfinity : nearest;
  }
  static constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;

  uint64_t words_[kWords];
};

/// Sums of types whose sums are all doubles need nothing more.
template <Dtype T>
struct NoLongSum {
  MSCCLC_HD void clear() {}
  MSCCLC_HD void add(double) {}
  MSCCLC_HD double rounded(bool) { return 0; }
};
template <Dtype T>
using RestOf = std::conditional_t<fits_double<T>(), NoLongSum<T>, LongSum<T>>;

/// Puts a part of a sum into its rest, of which nothing is used yet if not `used`.
template <Dtype T>
MSCCLC_APART void add_to_rest(RestOf<T>& rest, bool used, double part) {
  if (!used) rest.clear();
  rest.add(part);
}
/// What a double and the rest are together.
template <Dtype T>
MSCCLC_APART double sum_with_rest(RestOf<T>& rest, double sum, bool to_nearest) {
  rest.add(sum);
  return rest.rounded(to_nearest);
}

/// Too near to the largest double for TwoSum.
MSCCLC_HD inline bool is_huge(double value) {
  constexpr double kHuge = 0x1p1022;
  return value >= kHuge || value <= -kHuge;
}
MSCCLC_HD inline bool is_finite(double value) { return value - value == 0; }

/// Adds a source to a sum: what `sum` cannot hold goes into `rest`. Only inlined code has `sum` and
/// `used`, so that they may lie in registers.
template <Dtype T>
MSCCLC_HD inline void add_exactly(double& sum, RestOf<T>& rest, bool& used, double value) {
  if constexpr (fits_double<T>()) {
    sum += value;
  } else {
    const double more = sum + value;
    if constexpr (T == Dtype::f64) {
      const double part = is_huge(value) ? value : is_huge(more) ? sum : 0;
      if (part != 0 && is_finite(sum) && is_finite(value)) {
        add_to_rest<T>(rest, used, part);
        used = true;
        sum = is_huge(value) ? sum : value;
        return;
      }
    }
    const double added = more - sum;
    const double error = (sum - (more - added)) + (value - added);
    sum = more;
    if (error > 0 || error < 0) {  // it is NaN if there is an infinity or a NaN
      add_to_rest<T>(rest, used, error);
      used = true;
    }
  }
}

/// A sum that is divided in the accumulation type A.
template <Dtype T, class A>
MSCCLC_APART typename Element<T>::Bits exact_average(double sum, uint32_t divisor) {
  A whole{};
  if constexpr (kIsRounded<A>) {
    whole = A::of(round_to_odd(sum));
  } else {
    whole = static_cast<A>(sum);
  }
  divide_row(&whole, 1, divisor);
  return result_of<T, A>(whole);
}

/// The element that an exact sum gives, divided in the accumulation type A.
template <Dtype T, class A>
MSCCLC_HD inline typename Element<T>::Bits exact_result(double sum, RestOf<T>& rest, bool used,
                                                        uint32_t divisor) {
  if (used && is_finite(sum)) {
    const bool stays = T == Dtype::f64 || (divisor > 1 && std::is_same_v<A, double>);
    sum = sum_with_rest<T>(rest, sum, stays);
  }
  return divisor > 1 ? exact_average<T, A>(sum, divisor) : result_of<T, double>(sum);
}

/// Exact sums of n elements of T.
template <Dtype T, uint32_t n>
struct ExactSums {
  double sums[n];
  RestOf<T> rests[n];
  bool used[n];

  MSCCLC_HD void start(const uint8_t* row, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      sums[i] = 0;
      used[i] = false;
    }
    add(row, count);
  }
  MSCCLC_HD void add(const uint8_t* row, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      add_exactly<T>(sums[i], rests[i], used[i],
                     static_cast<double>(Element<T>::read(element<T>(row, i))));
    }
  }
  template <class A>
  MSCCLC_HD void finish(uint8_t* row, uint32_t count, uint32_t divisor) {
    for (uint32_t i = 0; i < count; ++i) {
      const auto bits = exact_result<T, A>(sums[i], rests[i], used[i], divisor);
      memcpy(row + i * sizeof bits, &bits, sizeof bits);
    }
  }
};

}  // namespace mscclc::device
