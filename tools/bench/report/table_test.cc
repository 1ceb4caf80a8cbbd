#include "tools/bench/report/table.h"

#include <catch2/catch.hpp>

#include "tools/bench/results/sample_results.h"

namespace mscclc::bench {
namespace {

std::string rows_of(const std::vector<Result>& results, bool best = false) {
  std::vector<const Result*> list;
  for (const Result& r : results) list.push_back(&r);
  return bench_rows(list, best);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  for (size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
    list.push_back(text.substr(from, text.find('\n', from) - from));
  }
  return list;
}

TEST_CASE("rows begin as nccl-tests' do and stand under the heading") {
  const std::string row =
      rows_of({sample(1024, "one", Role::plan, 2), sample(1024, "nccl", Role::baseline, 5),
               sample(1024, "copy", Role::floor, 1)});
  const auto heading = lines(bench_header());
  REQUIRE(heading.size() == 3);
  CHECK(heading[1] ==
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong"
        "     time   algbw   busbw  #wrong      p50      p99   ratio      p50      p99   ratio"
        "    floor  who (what orders two calls)");
  CHECK(lines(row)[0] ==
        "        1024           256       f32     sum      -1     2.00    0.51    0.77       0"
        "     3.00    0.34    0.51       0     2.00     4.00    2.50     2.00     4.00    2.00"
        "     1.00  one (copies)");
}

TEST_CASE("what was not measured or not looked at shows as such") {
  Result r = sample(1024, "one", Role::plan, 2);
  r.in_place.reset();
  r.out_of_place->checked = false;
  CHECK(lines(rows_of({r}))[0] ==
        "        1024           256       f32     sum      -1     2.00    0.51    0.77     N/A"
        "        -       -       -     N/A     2.00     4.00       -        -        -       -"
        "        -  one (copies)");
}

TEST_CASE("--best keeps the fastest plan, all others, and plans that are wrong") {
  std::vector<Result> results = {
      sample(1024, "slow", Role::plan, 3), sample(1024, "fast", Role::plan, 2),
      sample(1024, "broken", Role::plan, 1), sample(1024, "nccl", Role::baseline, 9)};
  results[2].out_of_place->wrong = 7;
  const auto shown = lines(rows_of(results, true));
  REQUIRE(shown.size() == 3);
  CHECK(shown[0].find("fast") != std::string::npos);
  CHECK(shown[1].find("broken") != std::string::npos);
  CHECK(shown[2].find("nccl") != std::string::npos);
}

TEST_CASE("the fastest plan stands beside the fastest kernel by hand") {
  const std::vector<Result> results = {sample(1024, "one", Role::plan, 2.35),
                                       sample(1024, "two", Role::plan, 3),
                                       sample(1024, "handwritten-1shot", Role::handwritten, 2.2),
                                       sample(4096, "one", Role::plan, 4)};
  const auto tables = tables_of(results);
  CHECK(overhead_text(tables.begin()->second) ==
        "# Fastest plan and fastest kernel by hand, out of place:\n"
        "#       size     plan   kernel\n"
        "#       1024     2.35     2.20    +0.15 us    +6.8 %  one, handwritten-1shot\n");
}

TEST_CASE("a wrong contender is counted, and has no bandwidth") {
  std::vector<Result> results = {sample(3000, "one", Role::plan, 2)};
  results[0].out_of_place = Times{.wrong = 7, .checked = true};
  results[0].in_place.reset();
  const auto tables = tables_of(results);
  CHECK(bench_footer(tables.begin()->second) == "# Out of bounds values : 7 FAILED\n#\n");
}

TEST_CASE("the footer has the average bus bandwidth of each, over both placements") {
  std::vector<Result> results = {sample(3000, "one", Role::plan, 2),
                                 sample(3000, "nccl", Role::baseline, 5)};
  results[1].in_place.reset();
  const auto tables = tables_of(results);
  CHECK(bench_footer(tables.begin()->second) ==
        "# Out of bounds values : 0 OK\n"
        "# Avg bus bandwidth    : 1.875     one\n"
        "# Avg bus bandwidth    : 0.9       nccl\n#\n");
}

}  // namespace
}  // namespace mscclc::bench
