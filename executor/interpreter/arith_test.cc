#include "executor/interpreter/arith.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

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
