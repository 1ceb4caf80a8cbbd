// Exact sums by interpreter/exact.h and by the definition: every float type, elements of all kinds.
#include "executor/oracle/exact.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/interpreter/exact.h"

namespace mscclc {
namespace {

using device::Element;
using ExactRowBytes = std::vector<uint8_t>;

constexpr uint32_t kExactElements = 64;

/// What the exponents of elements are like.
enum class Mix : uint8_t { all, close, cancelling, largest, least, halves };
constexpr Mix kMixes[] = {Mix::all,     Mix::close, Mix::cancelling,
                          Mix::largest, Mix::least, Mix::halves};

template <Dtype T>
using Bits = typename Element<T>::Bits;
template <Dtype T>
constexpr uint32_t kWidth = 8 * sizeof(Bits<T>);

template <Dtype T>
Bits<T> some_element(Mix mix, Dice& dice) {
  constexpr uint64_t kSign = uint64_t{1} << (kWidth<T> - 1);
  const uint64_t random = dice.next(), magnitude = random & (kSign - 1);
  uint64_t bits = random & (2 * kSign - 1);
  if (mix == Mix::close) bits = (random & kSign) | kSign / 4 | magnitude % (kSign / 8);
  if (mix == Mix::largest)
    bits = (random & kSign) | (kSign - kSign / 16 + magnitude % (kSign / 16));
  if (mix == Mix::least) bits = (random & kSign) | magnitude % (kSign / 64 + 2);
  if (mix == Mix::halves) bits = (random & kSign) | (magnitude & ~(kSign / 64 - 1));  // ties
  const auto value = Element<T>::read(static_cast<Bits<T>>(bits));
  const bool finite = value - value == 0;
  return static_cast<Bits<T>>(finite || dice.below(50) == 0 ? bits : bits % (kSign / 2));
}

template <Dtype T>
std::vector<ExactRowBytes> some_rows(Mix mix, uint32_t sources, Dice& dice) {
  std::vector<ExactRowBytes> rows(sources, ExactRowBytes(kExactElements * sizeof(Bits<T>)));
  for (uint32_t i = 0; i < kExactElements; ++i) {
    for (uint32_t r = 0; r < sources; ++r) {
      Bits<T> bits = some_element<T>(mix, dice);
      if (mix == Mix::cancelling && r % 2 == 1 && dice.below(4) != 0) {
        bits = device::element<T>(rows[r - 1].data(), i);
        bits ^= static_cast<Bits<T>>(uint64_t{1} << (kWidth<T> - 1));
        if (dice.below(4) == 0) bits ^= 1;
      }
      std::memcpy(rows[r].data() + i * sizeof bits, &bits, sizeof bits);
    }
    // A large pair around others.
    if (sources > 2) std::swap(rows[1][i], rows[sources - 1][i]);
  }
  return rows;
}

template <Dtype T, Dtype A>
ExactRowBytes by_machine(const std::vector<ExactRowBytes>& rows, uint32_t divisor) {
  device::ExactSums<T, kExactElements> sums;
  sums.start(rows[0].data(), kExactElements);
  for (size_t r = 1; r < rows.size(); ++r) sums.add(rows[r].data(), kExactElements);
  ExactRowBytes out(rows[0].size());
  sums.template finish<device::SumOf<A>>(out.data(), kExactElements, divisor);
  return out;
}

template <Dtype T, Dtype A>
void try_all() {
  if constexpr (Element<T>::kIsFloat && device::sums_fit<T, A>()) {
    Dice dice(static_cast<uint64_t>(T) * 100 + static_cast<uint64_t>(A));
    for (const Mix mix : kMixes) {
      for (const uint32_t sources : {1u, 2u, 3u, 4u, 7u, 8u, 16u, 61u}) {
        INFO(info(T).name << " in " << info(A).name << ", mix " << static_cast<int>(mix) << ", "
                          << sources << " sources");
        auto rows = some_rows<T>(mix, sources, dice);
        const ExactRowBytes sum = by_machine<T, A>(rows, 1);
        CHECK(same_elements(T, sum, reduce_exactly(T, A, ReduceOp::sum, 1, rows)));
        const ExactRowBytes average = by_machine<T, A>(rows, sources);
        CHECK(same_elements(T, average, reduce_exactly(T, A, ReduceOp::avg, sources, rows)));
        // In any order.
        for (int turn = 0; turn < 4; ++turn) {
          for (size_t i = rows.size(); i > 1; --i) {
            std::swap(rows[i - 1], rows[dice.below(static_cast<uint32_t>(i))]);
          }
          CHECK(same_elements(T, sum, by_machine<T, A>(rows, 1)));
          CHECK(same_elements(T, average, by_machine<T, A>(rows, sources)));
        }
      }
    }
  }
}

template <Dtype T>
void try_type() {
#define DTYPE(name, ...) try_all<T, Dtype::name>();
#include "ir/ops/dtypes.def"
#undef DTYPE
}

TEST_CASE("exact sums are the elements next to the sums") {
#define DTYPE(name, ...) try_type<Dtype::name>();
#include "ir/ops/dtypes.def"
#undef DTYPE
}

TEST_CASE("as many sources as an op has, all as large or as small as can be") {
  const auto of_many = []<Dtype T>(Bits<T> bits, bool one_more) {
    std::vector<ExactRowBytes> rows(info(Summation::exact).most_sources,
                                    ExactRowBytes(kExactElements * sizeof bits));
    for (ExactRowBytes& row : rows) {
      for (uint32_t i = 0; i < kExactElements; ++i) {
        std::memcpy(row.data() + i * sizeof bits, &bits, sizeof bits);
      }
    }
    if (one_more) rows.back().assign(rows.back().size(), 1);
    CHECK(
        same_elements(T, by_machine<T, T>(rows, 1), reduce_exactly(T, T, ReduceOp::sum, 1, rows)));
    const auto by = static_cast<uint32_t>(rows.size());
    CHECK(same_elements(T, by_machine<T, T>(rows, by),
                        reduce_exactly(T, T, ReduceOp::avg, by, rows)));
  };
  for (const bool one_more : {false, true}) {
    of_many.operator()<Dtype::f64>(0x7fefffffffffffffu, one_more);
    of_many.operator()<Dtype::f64>(0xffefffffffffffffu, one_more);
    of_many.operator()<Dtype::f64>(1, one_more);
    of_many.operator()<Dtype::f32>(0x7f7fffff, one_more);
    of_many.operator()<Dtype::f32>(0x80000001, one_more);
    of_many.operator()<Dtype::bf16>(0xff7f, one_more);
    of_many.operator()<Dtype::f16>(0x7bff, one_more);
    of_many.operator()<Dtype::f16>(0x8001, one_more);
    of_many.operator()<Dtype::e5m2>(0x7b, one_more);
    of_many.operator()<Dtype::e4m3>(0xfe, one_more);
    of_many.operator()<Dtype::e4m3b15>(0x77, one_more);
  }
}

TEST_CASE("what is no exact sum is added up in turn") {
  const std::vector<ExactRowBytes> rows = {{1, 200}, {100, 100}, {3, 3}};
  CHECK(reduce_exactly(Dtype::u8, Dtype::u8, ReduceOp::sum, 1, rows) == ExactRowBytes{104, 47});
  CHECK(reduce_exactly(Dtype::u8, Dtype::u8, ReduceOp::max, 1, rows) == ExactRowBytes{100, 200});
}

TEST_CASE("elements are the same if both are NaN") {
  const ExactRowBytes one = {0xc0, 0x7f}, other = {0xc1, 0xff}, infinity = {0x80, 0x7f};
  CHECK(same_elements(Dtype::bf16, one, other));
  CHECK_FALSE(same_elements(Dtype::bf16, one, infinity));
  CHECK_FALSE(same_elements(Dtype::u8, one, other));
}

}  // namespace
}  // namespace mscclc
