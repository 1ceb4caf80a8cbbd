// The arithmetic of row functions, and how values are stored.
#include "executor/rows/row_math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "executor/cpu/dice.h"
#include "executor/rows/row_values.h"

namespace mscclc::rows {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

TEST_CASE("exp is within 1.1 units in the last place, and exact at its ends") {
  Dice dice(1);
  double worst = 0;
  for (int round = 0; round < 200'000; ++round) {
    const float x = static_cast<float>(dice.below(1'750'000)) / 10'000 - 87;  // -87 to 88
    const double wanted = std::exp(static_cast<double>(x));
    const double unit = std::ldexp(1.0, std::ilogb(wanted) - 23);
    worst = std::max(worst, std::fabs(call_exp(x) - wanted) / unit);
  }
  CHECK(worst < 1.1);
  CHECK(worst > 0.4);
  CHECK(call_exp(0.0f) == 1.0f);
  CHECK(call_exp(-0.0f) == 1.0f);
  CHECK(call_exp(89.0f) == kInfinity);
  CHECK(call_exp(kInfinity) == kInfinity);
  CHECK(call_exp(-105.0f) == 0.0f);
  CHECK(call_exp(-kInfinity) == 0.0f);
  CHECK(call_exp(-100.0f) > 0.0f);  // subnormal
  CHECK(std::isnan(call_exp(kNan)));
}

/// Some float: of any bits, with few of them, or next to a power of two.
float any_float(Dice& dice) {
  uint32_t bits = static_cast<uint32_t>(dice.next());
  if (dice.below(4) == 0) bits &= 0xffff0000;
  if (dice.below(4) == 0)
    bits = (bits & 0xff800000) | (dice.below(2) == 0 ? dice.below(4) : 0x7ffffc + dice.below(4));
  return float_of(bits);
}

TEST_CASE("a quick quotient is that of a division, or says that it may not be") {
  Dice dice(3);
  uint64_t quick = 0, wrong = 0;
  for (int round = 0; round < 3'000'000; ++round) {
    const float x = any_float(dice), y = any_float(dice);
    bool right = true;
    const float quotient = quick_quotient(x, y, right);
    quick += right ? 1 : 0;
    if (right && bits_of(quotient) != bits_of(x / y)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(quick > 300'000);
  for (const float x : {0.0f, -0.0f}) {
    for (const float y : {3.0f, -3.0f}) {
      bool right = true;
      CHECK(bits_of(quick_quotient(x, y, right)) == bits_of(x / y));
      CHECK(right);
    }
  }
  for (const float x : {1.0f, kNan, kInfinity, 1e-30f, 1e30f}) {
    for (const float y : {0.0f, kNan, kInfinity, 1e-30f, 1e30f}) {
      bool right = true;
      quick_quotient(x, y, right);
      CHECK_FALSE(right);
    }
  }
}

TEST_CASE("powers of two around numbers") {
  const float least = std::numeric_limits<float>::denorm_min();
  const float normal = std::numeric_limits<float>::min();
  struct Case {
    float x, down, up;
  };
  const Case cases[] = {{1.0f, 1.0f, 1.0f},
                        {1.5f, 1.0f, 2.0f},
                        {-3.0f, 2.0f, 4.0f},
                        {std::nextafter(4.0f, 5.0f), 4.0f, 8.0f},
                        {std::nextafter(4.0f, 3.0f), 2.0f, 4.0f},
                        {0.0f, 0.0f, 0.0f},
                        {least, least, least},
                        {3 * least, 2 * least, 4 * least},
                        {std::nextafter(normal, 0.0f), normal / 2, normal},
                        {std::numeric_limits<float>::max(), std::ldexp(1.0f, 127), kInfinity},
                        {kInfinity, kInfinity, kInfinity}};
  for (const Case& c : cases) {
    INFO(c.x);
    CHECK(call_pow2_down(c.x) == c.down);
    CHECK(call_pow2_up(c.x) == c.up);
  }
  CHECK(std::isnan(call_pow2_down(kNan)));
  CHECK(std::isnan(call_pow2_up(kNan)));
}

TEST_CASE("the lesser and the greater, with zeros of two signs and NaN") {
  CHECK(call_min(1.0f, -2.0f) == -2.0f);
  CHECK(call_max(1.0f, -2.0f) == 1.0f);
  for (const bool swapped : {false, true}) {
    const float a = swapped ? -0.0f : 0.0f, b = swapped ? 0.0f : -0.0f;
    CHECK(std::signbit(call_min(a, b)));
    CHECK_FALSE(std::signbit(call_max(a, b)));
    CHECK(std::isnan(swapped ? call_min(kNan, 1.0f) : call_min(1.0f, kNan)));
    CHECK(std::isnan(swapped ? call_max(kNan, 1.0f) : call_max(1.0f, kNan)));
  }
}

TEST_CASE("powers of two in a byte") {
  CHECK(PowerOfTwo::read(127) == 1.0f);
  CHECK(PowerOfTwo::read(0) == std::ldexp(1.0f, -127));
  CHECK(PowerOfTwo::read(254) == std::ldexp(1.0f, 127));
  CHECK(std::isnan(PowerOfTwo::read(255)));
  for (uint32_t code = 0; code < 255; ++code) {
    const auto bits = static_cast<uint8_t>(code);
    CHECK(PowerOfTwo::write(PowerOfTwo::read(bits)) == bits);
    if (code > 0) CHECK(PowerOfTwo::write(PowerOfTwo::read(bits) * 0.75f) == bits);  // goes up
  }
  CHECK(PowerOfTwo::write(0.0f) == 0);
  CHECK(PowerOfTwo::write(std::ldexp(1.0f, -140)) == 0);
  CHECK(PowerOfTwo::write(kInfinity) == 254);
  CHECK(PowerOfTwo::write(kNan) == 255);
}

TEST_CASE("what is stored is one NaN") {
  using device::Element;
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
    CHECK(store_as<Element<Dtype::f32>>(float_of(bits)) == 0x7fffffff);
    CHECK(store_as<Element<Dtype::f16>>(float_of(bits)) == 0x7fff);
    CHECK(store_as<Element<Dtype::bf16>>(float_of(bits)) == 0x7fff);
    CHECK(store_as<Element<Dtype::e4m3>>(float_of(bits)) == 0x7f);
  }
}

}  // namespace
}  // namespace mscclc::rows
