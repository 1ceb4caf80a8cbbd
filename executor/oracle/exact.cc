#include "executor/oracle/exact.h"

#include <array>
#include <cmath>

#include "executor/interpreter/arith.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

using ExactRows = std::span<const std::vector<uint8_t>>;

/// An integer times 2^kLeast, in digits of base 2^32 that may have any sign and be too large until
/// they are asked for.
class WideNumber {
 public:
  /// Adds `times` a finite double.
  void add(double value, int64_t times) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    auto digits = static_cast<int64_t>(std::ldexp(fraction, 53));
    int place = exponent - 53 - kLeast;
    for (; digits != 0 && place < 0; ++place) digits /= 2;  // they are zeros
    if (digits == 0) return;
    const int at = place / 32, by = place % 32;
    const int64_t sign = digits < 0 ? -times : times;
    const auto left = static_cast<uint64_t>(digits < 0 ? -digits : digits);
    for (int i = 0; i < 3; ++i) {
      digits_[at + i] += sign * static_cast<int64_t>(shifted(left, by - 32 * i) & 0xffffffffu);
    }
  }
  int sign() const {
    std::array<int64_t, kDigits> settled = digits_;
    bool any = false;
    for (int i = 0; i + 1 < kDigits; ++i) {
      const int64_t carry = settled[i] >> 32;  // rounds down
      settled[i] -= carry * (int64_t{1} << 32);
      settled[i + 1] += carry;
      any |= settled[i] != 0;
    }
    return settled[kDigits - 1] < 0 ? -1 : any || settled[kDigits - 1] > 0 ? 1 : 0;
  }
  WideNumber times(int64_t factor) const {
    WideNumber product = *this;
    for (int64_t& digit : product.digits_) digit *= factor;
    return product;
  }

 private:
  static uint64_t shifted(uint64_t digits, int left) {
    return left >= 0 ? digits << left : left > -64 ? digits >> -left : 0;
  }

  static constexpr int kLeast = -1088, kDigits = 70;
  std::array<int64_t, kDigits> digits_{};
};

template <Dtype T>
using BitsOf = typename device::Element<T>::Bits;

template <Dtype T>
double value_of(uint64_t code) {
  return static_cast<double>(device::Element<T>::read(static_cast<BitsOf<T>>(code)));
}

/// The largest finite code without sign.
template <Dtype T>
uint64_t top_code() {
  uint64_t low = 0, high = (uint64_t{1} << (8 * sizeof(BitsOf<T>) - 1)) - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (std::isfinite(value_of<T>(middle))) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// The code of the element that is nearest to a number that is not negative.
template <Dtype T>
uint64_t nearest_code(const WideNumber& number) {
  const uint64_t top = top_code<T>();
  uint64_t low = 0, high = top;
  while (low < high) {  // the largest that is not above the number
    const uint64_t middle = low + (high - low + 1) / 2;
    WideNumber left = number;
    left.add(value_of<T>(middle), -1);
    if (left.sign() >= 0) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  WideNumber twice = number.times(2);  // less this element and the next
  twice.add(value_of<T>(low), -1);
  if (low < top) {
    twice.add(value_of<T>(low + 1), -1);
  } else {  // the next would be as far away as the last
    twice.add(value_of<T>(low), -2);
    twice.add(value_of<T>(low - 1), 1);
  }
  const int side = twice.sign();
  if (side < 0 || (side == 0 && low % 2 == 0)) return low;
  if (low < top) return low + 1;
  const auto huge = static_cast<device::ValueOf<T>>(HUGE_VAL);  // infinity, or what stands for it
  return device::Element<T>::write(huge);
}

template <Dtype T>
BitsOf<T> nearest(const WideNumber& number) {
  const bool negative = number.sign() < 0;
  const uint64_t code = nearest_code<T>(negative ? number.times(-1) : number);
  const uint64_t sign = negative && code != 0 ? uint64_t{1} << (8 * sizeof(BitsOf<T>) - 1) : 0;
  return static_cast<BitsOf<T>>(code | sign);
}

/// An average: the sum, an element of A, divided as such.
template <Dtype T, Dtype A>
BitsOf<T> divided(BitsOf<A> bits, uint32_t divisor) {
  using Sum = device::SumOf<A>;
  auto sum = device::widen<A, Sum>(bits);
  device::divide_row(&sum, 1, divisor);
  return device::result_of<T, Sum>(sum);
}

template <Dtype T, Dtype A>
BitsOf<T> exact_sum(ExactRows rows, uint32_t i, uint32_t divisor) {
  WideNumber number;
  double plain = 0;
  for (const std::vector<uint8_t>& row : rows) {
    const auto value =
        static_cast<double>(device::Element<T>::read(device::element<T>(row.data(), i)));
    if (!std::isfinite(value)) plain += value;
    if (std::isfinite(value)) number.add(value, 1);
  }
  const bool special = plain != 0;  // an infinity, or a NaN
  if (divisor > 1) {
    return divided<T, A>(special ? device::narrow<A, double>(plain) : nearest<A>(number), divisor);
  }
  return special ? device::result_of<T, double>(plain) : nearest<T>(number);
}

template <ReduceOp R, Dtype T, class Sum>
BitsOf<T> sum_in_turn(ExactRows rows, uint32_t i, uint32_t divisor) {
  auto sum = device::widen<T, Sum>(device::element<T>(rows[0].data(), i));
  for (const std::vector<uint8_t>& row : rows.subspan(1)) {
    sum = device::combine<R>(sum, device::widen<T, Sum>(device::element<T>(row.data(), i)));
  }
  if (divisor > 1) device::divide_row(&sum, 1, divisor);
  return device::result_of<T, Sum>(sum);
}

template <Dtype T, Dtype A>
BitsOf<T> reduce_one(ReduceOp reduce, ExactRows rows, uint32_t i, uint32_t divisor) {
  using Sum = device::SumOf<A>;
  if (reduce == ReduceOp::min) return sum_in_turn<ReduceOp::min, T, Sum>(rows, i, divisor);
  if (reduce == ReduceOp::max) return sum_in_turn<ReduceOp::max, T, Sum>(rows, i, divisor);
  if (reduce == ReduceOp::prod) return sum_in_turn<ReduceOp::prod, T, Sum>(rows, i, divisor);
  if constexpr (device::Element<T>::kIsFloat) return exact_sum<T, A>(rows, i, divisor);
  return sum_in_turn<ReduceOp::sum, T, Sum>(rows, i, divisor);
}

template <Dtype T>
void reduce_all(Dtype accumulate, ReduceOp reduce, uint32_t divisor, ExactRows rows,
                std::vector<uint8_t>& out) {
  const auto each = [&](auto one) {
    for (uint32_t i = 0; i < out.size() / sizeof(BitsOf<T>); ++i) {
      const BitsOf<T> bits = one(i);
      std::memcpy(out.data() + i * sizeof bits, &bits, sizeof bits);
    }
  };
  switch (accumulate) {
#define DTYPE(name, ...)                                                                      \
  case Dtype::name:                                                                           \
    if constexpr (device::sums_fit<T, Dtype::name>()) {                                       \
      each([&](uint32_t i) { return reduce_one<T, Dtype::name>(reduce, rows, i, divisor); }); \
    }                                                                                         \
    return;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
}

template <Dtype T>
bool same(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  for (uint32_t i = 0; i < a.size() / sizeof(BitsOf<T>); ++i) {
    const auto x = device::element<T>(a.data(), i), y = device::element<T>(b.data(), i);
    const auto vx = device::Element<T>::read(x), vy = device::Element<T>::read(y);
    if (x != y && (vx == vx || vy == vy)) return false;
  }
  return true;
}

}  // namespace

std::vector<uint8_t> reduce_exactly(Dtype dtype, Dtype accumulate, ReduceOp reduce,
                                    uint32_t divisor, ExactRows rows) {
  precondition(!rows.empty());
  std::vector<uint8_t> out(rows[0].size());
  switch (dtype) {
#define DTYPE(name, ...)                                             \
  case Dtype::name:                                                  \
    reduce_all<Dtype::name>(accumulate, reduce, divisor, rows, out); \
    break;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return out;
}

bool same_elements(Dtype dtype, std::span<const uint8_t> a, std::span<const uint8_t> b) {
  if (a.size() != b.size()) return false;
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return same<Dtype::name>(a, b);
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return false;
}

}  // namespace mscclc
