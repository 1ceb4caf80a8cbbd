#include "executor/interpreter/arith.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace mscclc::device {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_CASE("min and max do not depend on the order") {
  const float values[] = {-kInf, -2, -0.0f, 0.0f, 1, kInf};
  for (const float a : values) {
    for (const float b : values) {
      CHECK(std::bit_cast<uint32_t>(least(a, b)) == std::bit_cast<uint32_t>(least(b, a)));
      CHECK(std::bit_cast<uint32_t>(greatest(a, b)) == std::bit_cast<uint32_t>(greatest(b, a)));
      CHECK(least(a, b) == std::min(a, b));
      CHECK(greatest(a, b) == std::max(a, b));
    }
  }
  CHECK(std::signbit(least(0.0f, -0.0f)));
  CHECK_FALSE(std::signbit(greatest(-0.0f, 0.0f)));
}

TEST_CASE("a NaN on either side gives NaN") {
  for (const float other : {0.0f, -1.0f, kInf, kNan}) {
    CHECK(std::isnan(least(kNan, other)));
    CHECK(std::isnan(least(other, kNan)));
    CHECK(std::isnan(greatest(kNan, other)));
    CHECK(std::isnan(greatest(other, kNan)));
  }
}

TEST_CASE("integers wrap around") {
  CHECK(combine<ReduceOp::sum, int8_t>(127, 1) == -128);
  CHECK(combine<ReduceOp::prod, int8_t>(-128, -1) == -128);
  CHECK(combine<ReduceOp::sum, uint8_t>(255, 1) == 0);
  CHECK(combine<ReduceOp::sum>(std::numeric_limits<int32_t>::max(), 1) ==
        std::numeric_limits<int32_t>::min());
  CHECK(combine<ReduceOp::prod>(std::numeric_limits<int64_t>::min(), int64_t{-1}) ==
        std::numeric_limits<int64_t>::min());
  CHECK(combine<ReduceOp::prod>(uint32_t{65537}, uint32_t{65537}) == 131073);
}

TEST_CASE("rows add up in the accumulation type and round once") {
  // 2048 + 1 + 1 in f16: each step alone would be lost.
  const auto big = narrow<Dtype::f16>(2048.0f), one = narrow<Dtype::f16>(1.0f);
  float sums[2];
  start_row<Dtype::f16>(sums, reinterpret_cast<const uint8_t*>(&big), 1);
  for (int i = 0; i < 2; ++i) {
    combine_row<Dtype::f16, float, ReduceOp::sum>(sums, reinterpret_cast<const uint8_t*>(&one), 1);
  }
  uint8_t row[2];
  finish_row<Dtype::f16>(row, sums, 1);
  CHECK(widen<Dtype::f16, float>(element<Dtype::f16>(row, 0)) == 2050.0f);
}

TEST_CASE("sums in f16 round after every step") {
  using Half = RoundedSum<Dtype::f16>;
  const auto row = [](auto bits) {
    return std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(&bits),
                                reinterpret_cast<const uint8_t*>(&bits) + sizeof bits);
  };
  Half sums[1];
  // 2048 + 1 + 1: each one is lost. In f32 none is.
  start_row<Dtype::f16>(sums, row(narrow<Dtype::f16>(2048.0f)).data(), 1);
  for (int i = 0; i < 2; ++i) {
    combine_row<Dtype::f16, Half, ReduceOp::sum>(sums, row(narrow<Dtype::f16>(1.0f)).data(), 1);
  }
  CHECK(sums[0].value == 2048.0f);
  // fp8: 448 + 448 is beyond e4m3, not beyond f16.
  start_row<Dtype::e4m3>(sums, row(narrow<Dtype::e4m3>(448.0f)).data(), 1);
  combine_row<Dtype::e4m3, Half, ReduceOp::sum>(sums, row(narrow<Dtype::e4m3>(448.0f)).data(), 1);
  CHECK(sums[0].value == 896.0f);
  divide_row(sums, 1, 4);
  CHECK(sums[0].value == 224.0f);
  divide_row(sums, 1, 3);
  CHECK(sums[0].value == 74.6875f);  // 74.667, to 11 digits
  uint8_t out = 0;
  finish_row<Dtype::e4m3>(&out, sums, 1);
  CHECK(out == narrow<Dtype::e4m3>(72.0f));
  // Beyond f16 a sum is infinite, and stays so.
  sums[0] = Half::of(65504.0f);
  combine_row<Dtype::f16, Half, ReduceOp::sum>(sums, row(narrow<Dtype::f16>(65504.0f)).data(), 1);
  combine_row<Dtype::f16, Half, ReduceOp::sum>(sums, row(narrow<Dtype::f16>(-65504.0f)).data(), 1);
  CHECK(sums[0].value == kInf);
}

TEST_CASE("a result that is zero is +0.0") {
  CHECK(result_of<Dtype::f32>(-0.0f) == 0);
  CHECK(result_of<Dtype::f64>(-0.0) == 0);
  CHECK(result_of<Dtype::bf16>(-0.0f) == 0);
  // Only rounding makes a zero of these.
  CHECK(result_of<Dtype::e4m3>(-1e-30f) == 0);
  CHECK(result_of<Dtype::f16>(-1e-30) == 0);
  CHECK(result_of<Dtype::e5m2>(RoundedSum<Dtype::f16>::of(-1e-30f)) == 0);
  // Others keep their signs, and integers all bits.
  CHECK(result_of<Dtype::f16>(-1.0f) == 0xbc00);
  CHECK(result_of<Dtype::e4m3>(-0.001953125f) == 0x81);
  CHECK(result_of<Dtype::i8>(int8_t{-128}) == 0x80);
  CHECK(result_of<Dtype::i32>(std::numeric_limits<int32_t>::min()) == 0x80000000u);
}

template <ReduceOp R>
uint32_t result_with(float a, float zero, float b) {
  return result_of<Dtype::f32>(combine<R>(combine<R>(a, zero), b));
}

TEST_CASE("no result depends on the signs of zeros among its sources") {
  const float values[] = {-0.0f, 0.0f, -2, 3, kInf, -1e-45f};
  for (const float a : values) {
    for (const float b : values) {
      CHECK(result_with<ReduceOp::sum>(a, -0.0f, b) == result_with<ReduceOp::sum>(a, 0.0f, b));
      CHECK(result_with<ReduceOp::min>(a, -0.0f, b) == result_with<ReduceOp::min>(a, 0.0f, b));
      CHECK(result_with<ReduceOp::max>(a, -0.0f, b) == result_with<ReduceOp::max>(a, 0.0f, b));
      CHECK(result_with<ReduceOp::prod>(a, -0.0f, b) == result_with<ReduceOp::prod>(a, 0.0f, b));
    }
  }
}

TEST_CASE("avg divides and truncates integers") {
  int32_t sums[] = {-7, 7, -8};
  divide_row(sums, 3, 2);
  CHECK(sums[0] == -3);
  CHECK(sums[1] == 3);
  CHECK(sums[2] == -4);
  int8_t narrow_sums[] = {-128, 127};
  divide_row(narrow_sums, 2, 200);  // more ranks than the type can hold
  CHECK(narrow_sums[0] == 0);
  CHECK(narrow_sums[1] == 0);
  uint64_t wide[] = {~uint64_t{0}};
  divide_row(wide, 1, 2);
  CHECK(wide[0] == ~uint64_t{0} / 2);
  float thirds[] = {1};
  divide_row(thirds, 1, 3);
  CHECK(thirds[0] == 1.0f / 3.0f);
}

}  // namespace
}  // namespace mscclc::device
