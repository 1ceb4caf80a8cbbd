#include "executor/oracle/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/interpreter/arith.h"

namespace mscclc {
namespace {

using device::Element;
using device::narrow;
using device::ValueOf;
using device::widen;

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// What the keys of a float type must stay within.
struct FloatLimits {
  int64_t exact;     ///< largest n such that all integers to n are exact
  int64_t top_bits;  ///< code of the largest finite value
  int exponent;      ///< powers of two to 2^-exponent and 2^exponent are exact
  double scale;      ///< of sums
};

FloatLimits limits(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {1 << 11, 0x7bff, 15, 1};
    case Dtype::bf16:
      return {1 << 8, 0x7f7f, 126, 1};
    case Dtype::f64:
      return {int64_t{1} << 53, 0x7fefffffffffffff, 1000, 1};
    case Dtype::e4m3:
      return {16, 0x7e, 8, 1};
    case Dtype::e5m2:
      return {8, 0x7b, 15, 1};
    case Dtype::e4m3b15:
      return {16, 0x77, 0, 1.0 / 32};  // below 1: powers of two only fall
    default:
      return {1 << 24, 0x7f7fffff, 126, 1};
  }
}

constexpr int64_t kExponent = 1 << 16;  // key of 2^1 among products

/// Calls fn(tag) with the data type as a constant: decltype(tag)::kType.
template <Dtype T>
struct DtypeTag {
  static constexpr Dtype kType = T;
};
template <class Fn>
auto with_dtype(Dtype dtype, Fn fn) {
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return fn(DtypeTag<Dtype::name>{});
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return fn(DtypeTag<Dtype::f32>{});
}

/// Bits of the element nearest to a value.
template <class A>
uint64_t narrowed(Dtype dtype, A value) {
  return with_dtype(dtype,
                    [&](auto tag) -> uint64_t { return narrow<decltype(tag)::kType>(value); });
}

/// A value as an accumulation type of at most 32 bits holds it.
float rounded(Dtype accumulate, float value) {
  return with_dtype(accumulate, [&](auto tag) {
    using Sum = device::SumOf<decltype(tag)::kType>;
    if constexpr (device::kIsRounded<Sum>) {
      return Sum::of(value).value;
    } else {
      return value;
    }
  });
}

}  // namespace

TestValues::TestValues(Dtype dtype, Dtype accumulate, ReduceOp reduce, uint32_t ranks)
    : dtype_(dtype),
      accumulate_(accumulate),
      reduce_(reduce),
      ranks_(ranks),
      element_(info(dtype).bytes) {
  choose();
  keys_.resize(kTable * ranks);
  bits_.resize(keys_.size() * element_);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (uint32_t i = 0; i < kTable; ++i) {
      const size_t at = kTable * rank + i;
      keys_[at] = make_key(rank, i);
      uint64_t bits = bits_of(keys_[at]);
      // Some zeros are sent as -0.0.
      const bool minus = bits == 0 && i % 16 == 0 && info(dtype).kind == DtypeKind::kFloat;
      if (minus) bits = uint64_t{1} << (8 * element_ - 1);
      std::memcpy(bits_.data() + at * element_, &bits, element_);
    }
  }
}

void TestValues::choose() {
  const DtypeInfo& type = info(dtype_);
  const bool is_float = type.kind == DtypeKind::kFloat;
  negative_ = type.kind != DtypeKind::kUnsigned;
  const int64_t top = static_cast<int64_t>(~uint64_t{0} >> (65 - 8 * type.bytes));  // signed top
  const int64_t whole = negative_ || type.bytes == 8 ? top : 2 * top + 1;
  int64_t within = 0;  // of sums, or of exponents
  switch (reduce_) {
    case ReduceOp::sum:
    case ReduceOp::prod:
      kind_ = !is_float ? Keys::wrapping : reduce_ == ReduceOp::sum ? Keys::small : Keys::exponents;
      break;
    case ReduceOp::avg:
      kind_ = Keys::small;
      break;
    default:
      kind_ = Keys::ordered;
      break;
  }
  if (kind_ == Keys::wrapping) return;
  if (kind_ == Keys::ordered) {
    largest_ = is_float ? limits(dtype_).top_bits : whole;
    return;
  }
  if (is_float) {
    within = kind_ == Keys::small ? limits(dtype_).exact : limits(dtype_).exponent;
    scale_ = kind_ == Keys::small ? limits(dtype_).scale : 1;
  } else {
    within = whole;
  }
  if (within == 0) return;
  within = std::min(within, int64_t{1} << 40);
  every_ = static_cast<uint32_t>((ranks_ + within - 1) / within);
  const int64_t active = (ranks_ + every_ - 1) / every_;
  largest_ = std::clamp<int64_t>(within / active, 1, 1 << 20);
}

int64_t TestValues::small_key(uint64_t random) const {
  const auto most = static_cast<uint64_t>(largest_);
  const auto size = static_cast<int64_t>(1 + (random >> 8) % most);
  return negative_ && random % 2 != 0 ? -size : size;
}

int64_t TestValues::make_key(uint32_t rank, uint32_t index) const {
  const uint64_t random = mix((uint64_t{rank} << 32 | index) + 0x9e3779b97f4a7c15);
  const bool active = (rank + index) % every_ == 0;
  switch (kind_) {
    case Keys::small:
      return active ? small_key(random) : 0;
    case Keys::wrapping: {
      // Products of odd numbers stay odd: no factor is lost.
      const auto bits = static_cast<int64_t>(reduce_ == ReduceOp::prod ? random | 1 : random);
      return bits;
    }
    case Keys::ordered: {
      const auto most = static_cast<uint64_t>(largest_);
      const auto size = static_cast<int64_t>(
          most == ~uint64_t{0} >> 1 ? random >> 1 : (random >> 1) % (most + 1));
      return negative_ && random % 2 != 0 ? -size : size;
    }
    case Keys::exponents: {
      const int64_t sign = static_cast<int64_t>(random % 2);
      const int64_t exponent = dtype_ == Dtype::e4m3b15 ? -1
                               : !active                ? 0
                                                        : static_cast<int64_t>(random >> 8) % 3 - 1;
      return exponent * kExponent + sign;
    }
  }
  return 0;
}

uint64_t TestValues::bits_of(int64_t key) const { return finished_bits(key, 1); }

uint64_t TestValues::finished_bits(int64_t key, uint32_t contributions) const {
  if (info(dtype_).kind != DtypeKind::kFloat) {
    if (reduce_ == ReduceOp::avg) key /= static_cast<int64_t>(contributions);
    return static_cast<uint64_t>(key);
  }
  const uint64_t sign = uint64_t{1} << (8 * element_ - 1);
  if (kind_ == Keys::ordered) {
    return key < 0 ? sign | static_cast<uint64_t>(-key) : static_cast<uint64_t>(key);
  }
  if (kind_ == Keys::exponents) {
    const int64_t exponent = key >> 16;
    const uint64_t bits = std::bit_cast<uint64_t>(1.0) + (static_cast<uint64_t>(exponent) << 52);
    const double size = exponent < -1000 ? 0 : std::bit_cast<double>(bits);
    return narrowed(dtype_, key % 2 != 0 ? -size : size);
  }
  const double sum = static_cast<double>(key) * scale_;
  if (reduce_ != ReduceOp::avg || contributions == 1) return narrowed(dtype_, sum);
  if (accumulate_ == Dtype::f64) return narrowed(dtype_, sum / contributions);
  const float quotient = static_cast<float>(sum) / static_cast<float>(contributions);
  return narrowed(dtype_, rounded(accumulate_, quotient));
}

// Of one block the calls' windows all differ.
uint64_t TestValues::window(uint64_t block, uint64_t call) const {
  return (mix(block + 1) + call % kVariants * 109) % kWindows;
}

void TestValues::fill(uint32_t rank, uint64_t call, uint64_t first, uint64_t n, uint8_t* to) const {
  const uint8_t* table = bits_.data() + kTable * rank * element_;
  while (n > 0) {
    const uint64_t inside = first % kBlock, m = std::min(n, kBlock - inside);
    std::memcpy(to, table + (window(first / kBlock, call) + inside) * element_, m * element_);
    to += m * element_;
    first += m;
    n -= m;
  }
}

void TestValues::reduce(uint32_t rank, uint64_t call, uint64_t first, uint32_t n, bool start,
                        int64_t* keys) const {
  const int64_t* table = keys_.data() + kTable * rank;
  const bool product = reduce_ == ReduceOp::prod && kind_ == Keys::wrapping;
  while (n > 0) {
    const uint64_t inside = first % kBlock;
    const auto m = static_cast<uint32_t>(std::min<uint64_t>(n, kBlock - inside));
    const int64_t* row = table + window(first / kBlock, call) + inside;
    if (start) {
      std::copy_n(row, m, keys);
    } else if (reduce_ == ReduceOp::min) {
      for (uint32_t i = 0; i < m; ++i) keys[i] = std::min(keys[i], row[i]);
    } else if (reduce_ == ReduceOp::max) {
      for (uint32_t i = 0; i < m; ++i) keys[i] = std::max(keys[i], row[i]);
    } else if (product) {
      device::combine_row<Dtype::i64, int64_t, ReduceOp::prod>(
          keys, reinterpret_cast<const uint8_t*>(row), m);
    } else {
      device::combine_row<Dtype::i64, int64_t, ReduceOp::sum>(
          keys, reinterpret_cast<const uint8_t*>(row), m);
    }
    keys += m;
    first += m;
    n -= m;
  }
}

template <Dtype T>
void TestValues::finish_as(const int64_t* keys, uint32_t n, uint32_t contributions,
                           uint8_t* to) const {
  using Bits = typename Element<T>::Bits;
  // Sums of types that add up in f32 are exact there: a loop that the compiler can unroll.
  const bool simple =
      Element<T>::kIsFloat && sizeof(Bits) <= 4 && kind_ == Keys::small && reduce_ == ReduceOp::sum;
  const auto scale = static_cast<float>(scale_);
  for (uint32_t i = 0; i < n; ++i, to += sizeof(Bits)) {
    Bits bits;
    if (simple) {
      bits = narrow<T>(static_cast<float>(static_cast<int32_t>(keys[i])) * scale);
    } else {
      bits = static_cast<Bits>(finished_bits(keys[i], contributions));
    }
    if constexpr (Element<T>::kIsFloat) {
      if (contributions > 1) bits = device::without_minus_zero(bits);
    }
    std::memcpy(to, &bits, sizeof bits);
  }
}

void TestValues::finish(const int64_t* keys, uint32_t n, uint32_t contributions,
                        uint8_t* to) const {
  with_dtype(dtype_,
             [&](auto tag) { finish_as<decltype(tag)::kType>(keys, n, contributions, to); });
}

std::string element_text(Dtype dtype, const uint8_t* at) {
  return with_dtype(dtype, [&](auto tag) {
    constexpr Dtype kType = decltype(tag)::kType;
    const auto value = Element<kType>::read(device::element<kType>(at, 0));
    return fmt::format("{}", +value);
  });
}

bool same_element(Dtype dtype, const uint8_t* a, const uint8_t* b) {
  return with_dtype(dtype, [&](auto tag) {
    constexpr Dtype kType = decltype(tag)::kType;
    const auto x = device::element<kType>(a, 0), y = device::element<kType>(b, 0);
    if (x == y) return true;
    using Bits = typename Element<kType>::Bits;
    return Element<kType>::kIsFloat && static_cast<Bits>(x << 1) == 0 &&
           static_cast<Bits>(y << 1) == 0;
  });
}

}  // namespace mscclc
