#include "executor/interpreter/exact.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

namespace mscclc::device {
namespace {

constexpr double kExactInf = std::numeric_limits<double>::infinity();

template <Dtype T>
double exact_sum_of(const std::vector<double>& values, uint32_t divisor = 1) {
  double sum = 0;
  RestOf<T> rest;
  bool used = false;
  for (const double value : values) add_exactly<T>(sum, rest, used, value);
  const auto bits = exact_result<T, SumOf<T>>(sum, rest, used, divisor);
  return static_cast<double>(Element<T>::read(bits));
}

TEST_CASE("what a double cannot hold is not lost") {
  CHECK(exact_sum_of<Dtype::f32>({0x1p100, 1, -0x1p100}) == 1);
  CHECK(exact_sum_of<Dtype::f32>({0x1p127, 0x1p-149, -0x1p127}) == 0x1p-149);
  CHECK(exact_sum_of<Dtype::f32>({1, 0x1p-60, 0x1p-120, -1, -0x1p-60}) == 0x1p-120);
  CHECK(exact_sum_of<Dtype::f64>({1e308, 1e308, -1e308}) == 1e308);
  CHECK(exact_sum_of<Dtype::f64>({1, 0x1p-1074, -1}) == 0x1p-1074);
}

TEST_CASE("a sum is rounded once, to nearest, ties to even") {
  CHECK(exact_sum_of<Dtype::bf16>({1, 0x1p-8}) == 1);
  CHECK(exact_sum_of<Dtype::bf16>({1, 0x1p-8, 0x1p-133}) == 1 + 0x1p-7);
  CHECK(exact_sum_of<Dtype::bf16>({1, 0x1p-8, -0x1p-133}) == 1);
  CHECK(exact_sum_of<Dtype::bf16>({-1, -0x1p-8, -0x1p-60}) == -1 - 0x1p-7);
  CHECK(exact_sum_of<Dtype::f32>({1, 0x1p-24, 0x1p-149}) == 1 + 0x1p-23);
  CHECK(exact_sum_of<Dtype::f64>({1, 0x1p-53}) == 1);
  CHECK(exact_sum_of<Dtype::f64>({1, 0x1p-53, 0x1p-1074}) == 1 + 0x1p-52);
  CHECK(exact_sum_of<Dtype::f64>({1 + 0x1p-52, 0x1p-53}) == 1 + 0x1p-51);
}

TEST_CASE("infinities and NaNs are what additions give") {
  CHECK(exact_sum_of<Dtype::f32>({1, kExactInf, 0x1p-100}) == kExactInf);
  CHECK(exact_sum_of<Dtype::f32>({0x1p100, 1, -kExactInf}) == -kExactInf);
  const double nan = exact_sum_of<Dtype::f64>({kExactInf, 1e308, 1e308, -kExactInf});
  CHECK(nan != nan);
  CHECK(exact_sum_of<Dtype::f32>({0x1p127, 0x1p127}) == kExactInf);
  CHECK(exact_sum_of<Dtype::f64>({0x1p1023, 0x1p1023}) == kExactInf);
  CHECK(exact_sum_of<Dtype::f64>({0x1.fffffffffffffp1023, 0x1p969}) == 0x1.fffffffffffffp1023);
  CHECK(exact_sum_of<Dtype::f64>({0x1.fffffffffffffp1023, 0x1p970}) == kExactInf);
  CHECK(exact_sum_of<Dtype::e4m3>({448, 448}) == 448);
}

TEST_CASE("a zero is +0.0") {
  CHECK(std::bit_cast<uint64_t>(exact_sum_of<Dtype::f32>({-0.0, -0.0})) == 0);
  CHECK(std::bit_cast<uint64_t>(exact_sum_of<Dtype::bf16>({-0x1p-133, 0x1p-133})) == 0);
}

TEST_CASE("an average is the rounded sum, divided") {
  CHECK(exact_sum_of<Dtype::f32>({1, 2, 4}, 3) == static_cast<double>(7.0f / 3.0f));
  CHECK(exact_sum_of<Dtype::f32>({0x1p127, 0x1p127}, 2) == kExactInf);  // the sum is beyond f32
  CHECK(exact_sum_of<Dtype::f64>({1e308, 1e308}, 2) == kExactInf);
}

TEST_CASE("only sums and averages of floats differ if they are exact") {
  CHECK(differs_if_exact(true, ReduceOp::sum));
  CHECK(differs_if_exact(true, ReduceOp::avg));
  CHECK_FALSE(differs_if_exact(true, ReduceOp::min));
  CHECK_FALSE(differs_if_exact(true, ReduceOp::prod));
  CHECK_FALSE(differs_if_exact(false, ReduceOp::sum));
}

}  // namespace
}  // namespace mscclc::device
