// Rows of what was measured: what is joined, what is not, and that a table of them is read.
#include "tools/tune/overlap/measured_rows.h"

#include <catch2/catch.hpp>

#include "tools/tune/overlap/gemm_results_test.h"

namespace mscclc::tune {
namespace {

using namespace overlap;

constexpr GemmWay kEngine{kCopyEngine, 1, 1}, kTwoChunks{kCopyEngine, 2, 1}, kOneAfter{kSerial};

/// "[m, m] [flops a byte, …] backend" of each row, which a table takes.
std::vector<std::string> rows_of(const std::vector<GemmResult>& results) {
  const auto rows = measured_rows(results);
  Diagnostics diagnostics;
  const auto read = read_measured(measured_text(rows), "test", diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(read);
  CHECK(*read == rows);
  std::vector<std::string> all;
  for (const MeasuredChoice& row : rows) {
    all.push_back("[" + std::to_string(row.least_rows) + ", " + std::to_string(row.most_rows) +
                  "] [" + std::to_string(row.least_intensity) + ", " +
                  std::to_string(row.most_intensity) + "] " +
                  text_of({row.backend, row.chunks, row.budget}));
  }
  return all;
}

GemmResult gathers(uint64_t m, uint64_t n, const GemmWay& best, uint64_t k = 512) {
  return result_of(shape_of(OverlapKind::allgather_gemm, m, k, n), best);
}

}  // namespace

TEST_CASE("neighbours with the same best way are one range, which ends where others are best") {
  CHECK(rows_of({gathers(4096, 3000, kEngine), gathers(1024, 3000, kOneAfter),
                 gathers(2048, 3000, kEngine), gathers(8192, 3000, kTwoChunks)}) ==
        std::vector<std::string>{"[1024, 1024] [3000, 3000] serial",
                                 "[2048, 4096] [3000, 3000] copy_engine, chunks 1, budget 1",
                                 "[8192, 8192] [3000, 3000] copy_engine, chunks 2, budget 1"});
}

TEST_CASE("what is best again after another was is not joined over that") {
  CHECK(rows_of({gathers(1024, 3000, kEngine), gathers(2048, 3000, kOneAfter),
                 gathers(4096, 3000, kEngine)})
            .size() == 3);
}

TEST_CASE("a shape without a time has no row, and ranges do not cover it") {
  GemmResult none = gathers(2048, 3000, kOneAfter);
  none.times.clear();
  none.best = {};
  CHECK(rows_of({gathers(1024, 3000, kEngine), none}) ==
        std::vector<std::string>{"[1024, 1024] [3000, 3000] copy_engine, chunks 1, budget 1"});
}

TEST_CASE("layers with the same best way for the same rows are one range") {
  std::vector<GemmResult> results;
  for (const uint64_t n : {3000, 5000, 9000}) {
    results.push_back(gathers(1024, n, kEngine));
    results.push_back(gathers(2048, n, n == 9000 ? kOneAfter : kEngine));
  }
  CHECK(rows_of(results) ==
        std::vector<std::string>{"[1024, 1024] [9000, 9000] copy_engine, chunks 1, budget 1",
                                 "[2048, 2048] [9000, 9000] serial",
                                 "[1024, 2048] [3000, 5000] copy_engine, chunks 1, budget 1"});
}

TEST_CASE("shapes that a table takes for one have one row, of what is faster for all") {
  // As many columns, and so as many flops a byte, with another depth.
  GemmResult one = gathers(1024, 3000, kEngine), other = gathers(1024, 3000, kTwoChunks, 1024);
  CHECK(rows_of({one, other}) == std::vector<std::string>{"[1024, 1024] [3000, 3000] serial"});
  one.times.push_back({kTwoChunks, 850});
  other.times.push_back({kEngine, 990});
  CHECK(rows_of({one, other}) ==
        std::vector<std::string>{"[1024, 1024] [3000, 3000] copy_engine, chunks 2, budget 1"});
}

TEST_CASE("kinds, modes, ranks and types have rows of their own") {
  std::vector<GemmResult> results(5, gathers(1024, 3000, kEngine));
  results[1].shape.kind = OverlapKind::alltoall_gemm;
  results[2].mode = RunMode::eager;
  results[3].ranks = 4;
  results[4].shape.a_dtype = Dtype::f16;
  const auto rows = measured_rows(results);
  CHECK(rows.size() == 5);
  for (const MeasuredChoice& row : rows) {
    CHECK((row.gemm == MeasuredGemm::own) == (row.mode == RunMode::eager));
  }
}

TEST_CASE("flops a byte that are no whole number lie in the range") {
  GemmResult result = gathers(1024, 3001, kEngine);
  result.shape.a_dtype = Dtype::f32;  // 2 * 3001 / 4
  CHECK(rows_of({result}) ==
        std::vector<std::string>{"[1024, 1024] [1500, 1501] copy_engine, chunks 1, budget 1"});
}

}  // namespace mscclc::tune
