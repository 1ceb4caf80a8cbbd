// Conversions against the definition of each format: every code, every midpoint and its neighbours.
#include "executor/interpreter/numbers.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace mscclc::device {
namespace {

/// A format by its definition.
struct NumberFormat {
  int exponent, mantissa, bias;
  uint32_t top;   ///< largest finite code
  bool infinity;  ///< beyond it: infinity, else the largest
};
template <Dtype T>
constexpr NumberFormat format_of();
// clang-format off
template <> constexpr NumberFormat format_of<Dtype::f16>() { return {5, 10, 15, 0x7bff, true}; }
template <> constexpr NumberFormat format_of<Dtype::bf16>() { return {8, 7, 127, 0x7f7f, true}; }
template <> constexpr NumberFormat format_of<Dtype::e4m3>() { return {4, 3, 7, 0x7e, false}; }
template <> constexpr NumberFormat format_of<Dtype::e5m2>() { return {5, 2, 15, 0x7b, false}; }
template <> constexpr NumberFormat format_of<Dtype::e4m3b15>() { return {4, 3, 15, 0x77, false}; }
// clang-format on

double value_of(const NumberFormat& f, uint32_t code) {
  const int exponent = static_cast<int>(code >> f.mantissa);
  const int mantissa = static_cast<int>(code & ((1u << f.mantissa) - 1));
  if (exponent == 0) return std::ldexp(mantissa, 1 - f.bias - f.mantissa);
  return std::ldexp((1 << f.mantissa) + mantissa, exponent - f.bias - f.mantissa);
}

/// The code nearest to a positive value, by search.
uint32_t nearest_code(const NumberFormat& f, double value) {
  // The first value that is out of range, were there one more code.
  const double step = value_of(f, f.top) - value_of(f, f.top - 1);
  const double limit = value_of(f, f.top) + step;
  uint32_t low = 0;
  for (uint32_t high = f.top; low < high;) {
    const uint32_t middle = (low + high + 1) / 2;
    if (value_of(f, middle) <= value) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const double below = value_of(f, low), above = low == f.top ? limit : value_of(f, low + 1);
  const double middle = below + (above - below) / 2;
  const bool up = value > middle || (value == middle && low % 2 == 1);
  if (low == f.top && up) return f.infinity ? f.top + 1 : f.top;
  return up ? low + 1 : low;
}

template <Dtype T>
void check_value(double value) {
  constexpr NumberFormat f = format_of<T>();
  const uint32_t sign = 1u << (f.exponent + f.mantissa);
  INFO(info(T).name << ' ' << value);
  const uint32_t expected = nearest_code(f, value);
  CHECK(narrow<T, double>(value) == expected);
  CHECK(narrow<T, double>(-value) == (expected | sign));
  const auto single = static_cast<float>(value);
  if (single != value) return;
  CHECK(narrow<T, float>(single) == expected);
  CHECK(narrow<T, float>(-single) == (expected | sign));
}

template <Dtype T>
void check_format() {
  constexpr NumberFormat f = format_of<T>();
  using Bits = typename Element<T>::Bits;
  const uint32_t sign = 1u << (f.exponent + f.mantissa);
  for (uint32_t code = 0; code <= f.top; ++code) {
    const double value = value_of(f, code);
    CHECK(widen<T, double>(static_cast<Bits>(code)) == value);
    CHECK(widen<T, float>(static_cast<Bits>(code | sign)) == -static_cast<float>(value));
    const double next = value_of(f, code + 1);
    const double middle = value + (next - value) / 2;
    for (const double v : {value, middle, std::nextafter(middle, 0), std::nextafter(middle, 1e300),
                           double{std::nextafterf(static_cast<float>(middle), 0)},
                           double{std::nextafterf(static_cast<float>(middle), 1e38f)}}) {
      check_value<T>(v);
    }
  }
  const double huge = std::numeric_limits<double>::infinity();
  for (const double v : {1e30, 1e300, 5e-324, 1e-30, huge}) check_value<T>(v);
}

TEMPLATE_TEST_CASE_SIG("small floats convert as defined", "", ((Dtype T), T), Dtype::f16,
                       Dtype::bf16, Dtype::e4m3, Dtype::e5m2, Dtype::e4m3b15) {
  check_format<T>();
}

template <Dtype T>
void check_nan(std::vector<uint32_t> codes) {
  for (const uint32_t code : codes) {
    const auto value = widen<T, float>(static_cast<typename Element<T>::Bits>(code));
    CHECK(std::isnan(value));
    const auto back = narrow<T, float>(value);
    CHECK(std::isnan(widen<T, double>(back)));
    CHECK(std::isnan(widen<T, double>(narrow<T, double>(-std::nan("")))));
  }
}

TEST_CASE("NaN and infinity") {
  check_nan<Dtype::f16>({0x7c01, 0x7e00, 0x7fff, 0xfc01});
  check_nan<Dtype::bf16>({0x7f81, 0x7fff, 0xff81});
  check_nan<Dtype::e4m3>({0x7f, 0xff});
  check_nan<Dtype::e5m2>({0x7d, 0x7e, 0x7f, 0xff});
  check_nan<Dtype::e4m3b15>({0x78, 0x79, 0x7f, 0xf8});
  CHECK(narrow<Dtype::bf16>(std::bit_cast<float>(0x7f800001)) == 0x7fc0);
  CHECK(widen<Dtype::f16, float>(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(widen<Dtype::e5m2, float>(0x7c) == std::numeric_limits<float>::infinity());
}

TEST_CASE("known codes") {
  CHECK(widen<Dtype::e4m3, float>(0x7e) == 448.0f);
  CHECK(widen<Dtype::e5m2, float>(0x7b) == 57344.0f);
  CHECK(widen<Dtype::e4m3b15, float>(0x77) == 0.9375f);
  CHECK(narrow<Dtype::e4m3b15>(1.0f) == 0x77);
  CHECK(narrow<Dtype::e4m3>(464.0f) == 0x7e);
  CHECK(narrow<Dtype::e4m3>(1e9f) == 0x7e);
  CHECK(narrow<Dtype::e5m2>(61440.0f) == 0x7b);
  CHECK(narrow<Dtype::e5m2>(-std::numeric_limits<float>::infinity()) == 0xfb);
  CHECK(narrow<Dtype::f16>(65519.0f) == 0x7bff);
  CHECK(narrow<Dtype::f16>(65520.0f) == 0x7c00);
  CHECK(narrow<Dtype::f16>(-0.0f) == 0x8000);
}

TEST_CASE("integers narrow by dropping high bits") {
  CHECK(narrow<Dtype::i8, int64_t>(300) == 44);
  CHECK(narrow<Dtype::u8, uint32_t>(511) == 255);
  CHECK(narrow<Dtype::i32, int64_t>(int64_t{1} << 40 | 7) == 7);
  CHECK(widen<Dtype::i8, int64_t>(0x80) == -128);
  CHECK(widen<Dtype::u8, uint64_t>(0x80) == 128);
}

}  // namespace
}  // namespace mscclc::device
