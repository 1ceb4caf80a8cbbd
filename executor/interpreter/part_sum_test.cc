// Sums of parts: to the bit what adding in f32 in their order, and rounding once, gives.
#include "executor/interpreter/part_sum.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace mscclc::device {
namespace {

struct Sizes {
  uint32_t parts;
  uint64_t rows, columns;
  bool bias;
};

/// Values of a type, from far below 1 to above it, as what they are rounded to.
template <Dtype T>
std::vector<typename Element<T>::Bits> some_values(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<typename Element<T>::Bits> values;
  while (values.size() < count) values.push_back(Element<T>::write(normal(random)));
  return values;
}

template <Dtype T, uint32_t kPiece>
std::vector<typename Element<T>::Bits> add_in_pieces(PartSum sum) {
  struct alignas(16) Aligned {
    typename Element<T>::Bits bits[kPieceOf<T>];
  };
  std::vector<Aligned> to(sum.count / kPieceOf<T> + 1);
  sum.to = to.data();
  for (uint64_t at = 0; at < sum.count; at += kPiece) add_parts_at<T, kPiece>(sum, at);
  const auto* const first = to.front().bits;
  return {first, first + sum.count};
}

/// Of the rounded sum, which `before` gets.
template <Dtype T>
void check_gelu(PartSum sum, const std::vector<typename Element<T>::Bits>& sums) {
  using E = Element<T>;
  std::vector<typename E::Bits> before(sums.size()), expected;
  for (const auto bits : sums) expected.push_back(E::write(gelu(E::read(bits))));
  sum.gelu = true;
  CHECK(add_in_pieces<T, 1>(sum) == expected);
  sum.before = before.data();
  CHECK(add_in_pieces<T, 1>(sum) == expected);
  CHECK(before == sums);
}

template <Dtype T>
void check_sum(const Sizes& s) {
  using E = Element<T>;
  const uint64_t count = s.rows * s.columns;
  const auto from = some_values<T>(count * s.parts, 1), bias = some_values<T>(s.columns, 2);
  std::vector<typename E::Bits> expected;
  for (uint64_t i = 0; i < count; ++i) {
    float total = E::read(from[i]);
    for (uint32_t part = 1; part < s.parts; ++part) total += E::read(from[part * count + i]);
    if (s.bias) total = E::read(E::write(total)) + E::read(bias[i % s.columns]);
    expected.push_back(E::write(total));
  }
  const PartSum sum{.dtype = T,
                    .to = nullptr,
                    .from = from.data(),
                    .parts = s.parts,
                    .bias = s.bias ? bias.data() : nullptr,
                    .count = count,
                    .columns = s.columns,
                    .gelu = false,
                    .before = nullptr};
  CHECK(add_in_pieces<T, 1>(sum) == expected);
  check_gelu<T>(sum, expected);
  const bool whole = count % kPieceOf<T> == 0 && (!s.bias || s.columns % kPieceOf<T> == 0);
  CHECK(has_whole_pieces<T>(sum) == whole);
  if (whole) CHECK(add_in_pieces<T, kPieceOf<T>>(sum) == expected);
}

TEST_CASE("parts are added in their order and rounded once, a bias once more") {
  for (const uint32_t parts : {1u, 2u, 3u, 8u}) {
    for (const bool bias : {false, true}) {
      for (const auto& [rows, columns] : {std::pair{3u, 16u}, {5u, 7u}, {8u, 5u}, {1u, 1u}}) {
        const Sizes sizes{parts, rows, columns, bias};
        check_sum<Dtype::f32>(sizes);
        check_sum<Dtype::f16>(sizes);
        check_sum<Dtype::bf16>(sizes);
      }
    }
  }
}

TEST_CASE("a sum of a tile that begins between multiples of 16 bytes has no whole pieces") {
  alignas(16) uint16_t matrix[32] = {};
  const auto has_pieces = [](PartSum sum) { return has_whole_pieces<Dtype::bf16>(sum); };
  const PartSum sum{.dtype = Dtype::bf16,
                    .to = matrix,
                    .from = matrix,
                    .parts = 1,
                    .bias = nullptr,
                    .count = 8,
                    .columns = 8,
                    .gelu = true,
                    .before = nullptr};
  CHECK(has_pieces(sum));
  for (const void* PartSum::*const pointer : {&PartSum::from, &PartSum::bias}) {
    PartSum odd = sum;
    odd.*pointer = matrix + 20;  // as row 5 of 4 columns
    CHECK_FALSE(has_pieces(odd));
  }
  for (void* PartSum::*const pointer : {&PartSum::to, &PartSum::before}) {
    PartSum odd = sum;
    odd.*pointer = matrix + 20;
    CHECK_FALSE(has_pieces(odd));
  }
}

TEST_CASE("gelu is near x times the normal distribution's integral, and x or 0 far out") {
  for (float x = -8; x <= 8; x += 0.03125f) {
    const double exact = 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    CHECK(gelu(x) == Approx(exact).margin(1e-3));
  }
  CHECK(gelu(0.0f) == 0.0f);
  CHECK(gelu(1e30f) == 1e30f);
  CHECK(gelu(-1e30f) == 0.0f);
  CHECK(std::isnan(gelu(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace mscclc::device
