// That what is expected does not depend on the order of additions, and depends on everything else.
#include "executor/oracle/values.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "executor/cpu/arith.h"
#include "executor/cpu/dice.h"
#include "executor/lower.h"

namespace mscclc {
namespace {

constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                    ReduceOp::avg};
constexpr uint32_t kElements = 180;  // crosses a block of the tables

using Row = std::vector<uint8_t>;

/// Adds two rows with the simulator's arithmetic, rounding to the data type as a plan with many
/// steps does; `divisor` above 1 for the last step of avg.
Row add_rows(const RowArith& arith, const Row& a, const Row& b, uint32_t divisor) {
  std::vector<uint64_t> sums(kElements);
  Row out(a.size());
  arith.start(sums.data(), a.data(), kElements);
  arith.add(sums.data(), b.data(), kElements);
  if (divisor > 1) arith.divide(sums.data(), kElements, divisor);
  arith.finish(out.data(), sums.data(), kElements);
  return out;
}

/// Adds up all ranks' rows in a random tree.
Row add_in_some_order(const TestValues& values, const RowArith& arith, uint32_t ranks, Dice& dice) {
  std::vector<Row> rows(ranks, Row(size_t{kElements} * values.element()));
  for (uint32_t r = 0; r < ranks; ++r) values.fill(r, 3, 100, kElements, rows[r].data());
  const bool divides = values.reduction() == ReduceOp::avg;
  while (rows.size() > 1) {
    const auto n = static_cast<uint32_t>(rows.size());
    const uint32_t a = dice.below(n - 1);
    const uint32_t divisor = divides && n == 2 ? ranks : 1;
    rows[a] = add_rows(arith, rows[a], rows.back(), divisor);
    rows.pop_back();
  }
  return rows[0];
}

TEST_CASE("reductions are exact in every order") {
  Dice dice(1);
  for (const DtypeInfo& type : dtype_table()) {
    for (const DtypeInfo& sums : dtype_table()) {
      if (!can_accumulate(type.dtype, sums.dtype)) continue;
      for (const ReduceOp op : kReductions) {
        const RowArith arith = row_arith(type.dtype, sums.dtype, op);
        for (const uint32_t ranks : {2, 3, 17, 64}) {
          INFO(type.name << " in " << sums.name << ' ' << name(op) << ' ' << ranks);
          const TestValues values(type.dtype, sums.dtype, op, ranks);
          std::vector<int64_t> keys(kElements);
          for (uint32_t r = 0; r < ranks; ++r) {
            values.reduce(r, 3, 100, kElements, r == 0, keys.data());
          }
          Row expected(size_t{kElements} * type.bytes);
          values.finish(keys.data(), kElements, ranks, expected.data());
          for (int order = 0; order < 2; ++order) {
            const Row got = add_in_some_order(values, arith, ranks, dice);
            for (uint32_t i = 0; i < kElements; ++i) {
              const size_t at = size_t{i} * type.bytes;
              INFO("element " << i << ": expected " << element_text(type.dtype, &expected[at])
                              << ", got " << element_text(type.dtype, &got[at]));
              if (std::memcmp(&expected[at], &got[at], type.bytes) != 0) REQUIRE(false);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("values depend on rank, call and position") {
  const TestValues values(Dtype::f32, Dtype::f32, ReduceOp::sum, 4);
  const auto row = [&](uint32_t rank, uint64_t call, uint64_t first) {
    Row out(size_t{64} * 4);
    values.fill(rank, call, first, 64, out.data());
    return out;
  };
  std::set<Row> by_place, by_call;
  size_t places = 0;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (uint64_t first = 0; first < 200; ++first, ++places) by_place.insert(row(rank, 0, first));
    for (uint64_t first = 256; first < 1 << 24; first *= 2) {
      CHECK(row(rank, 0, first) != row(rank, 0, 0));
      CHECK(row(rank, 0, first) != row(rank, 0, first / 2));
    }
    for (uint64_t call = 0; call < TestValues::kVariants; ++call) {
      by_call.insert(row(rank, call, 77));
    }
  }
  CHECK(by_place.size() == places);
  CHECK(by_call.size() == 4 * TestValues::kVariants);
}

TEST_CASE("a missing or doubled contribution shows") {
  for (const DtypeInfo& type : dtype_table()) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::avg}) {
      const uint32_t ranks = 8;
      const TestValues values(type.dtype, type.accumulate, op, ranks);
      const auto total = [&](uint32_t missing, uint32_t doubled) {
        std::vector<int64_t> keys(kElements);
        bool start = true;
        for (uint32_t r = 0; r < ranks; ++r) {
          for (int times = r == missing ? 0 : r == doubled ? 2 : 1; times > 0; --times) {
            values.reduce(r, 0, 0, kElements, start, keys.data());
            start = false;
          }
        }
        Row out(size_t{kElements} * type.bytes);
        values.finish(keys.data(), kElements, ranks, out.data());
        return out;
      };
      INFO(type.name << ' ' << name(op));
      CHECK(total(ranks, ranks) != total(3, ranks));
      CHECK(total(ranks, ranks) != total(ranks, 3));
      CHECK(total(ranks, ranks) != total(5, 3));
    }
  }
}

TEST_CASE("elements as text") {
  const float f = 1.5f;
  CHECK(element_text(Dtype::f32, reinterpret_cast<const uint8_t*>(&f)) == "1.5");
  const uint8_t minus_two = 0xfe;
  CHECK(element_text(Dtype::i8, &minus_two) == "-2");
  CHECK(element_text(Dtype::u8, &minus_two) == "254");
  CHECK(element_text(Dtype::e4m3, &minus_two) == "-448");
  const uint8_t zeros[] = {0x00, 0x80};
  CHECK(same_element(Dtype::e5m2, zeros, zeros + 1));
  CHECK_FALSE(same_element(Dtype::u8, zeros, zeros + 1));
}

}  // namespace
}  // namespace mscclc
