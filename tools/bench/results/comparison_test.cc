#include "tools/bench/results/comparison.h"

#include <catch2/catch.hpp>

#include "tools/bench/results/sample_results.h"

namespace mscclc::bench {
namespace {

std::vector<const Result*> pointers(const std::vector<Result>& results) {
  std::vector<const Result*> list;
  for (const Result& r : results) list.push_back(&r);
  return list;
}

TEST_CASE("costs between other kernels than the table's are not taken from a record") {
  Result alike = sample(1024, "nccl", Role::baseline, 6);
  alike.between = "2 us";
  alike.out_of_place->between = 7;
  Result other = alike;
  other.who = "mscclpp";
  other.between = "5 us";
  other.out_of_place->between_early = 6.5;
  const std::vector<Result> recorded = {alike, other, sample(2048, "nccl", Role::baseline, 6)};
  Result blank = sample(1024, "", Role::plan, 0);
  blank.between = "2 us";
  const std::vector<Result> found = recorded_for(blank, 1024, recorded);
  REQUIRE(found.size() == 2);
  CHECK(found[0].out_of_place->between == 7);
  CHECK(found[1].out_of_place->time == 6);
  CHECK(found[1].out_of_place->between == 0);
  CHECK(found[1].out_of_place->between_early == 0);
  CHECK(found[1].between == "2 us");
  blank.mode = "eager";
  CHECK(recorded_for(blank, 1024, recorded).empty());
}

TEST_CASE("plans are compared with the fastest baseline, not with the floor or a kernel by hand") {
  const std::vector<Result> results = {
      sample(1024, "one", Role::plan, 3), sample(1024, "nccl", Role::baseline, 9),
      sample(1024, "nccl-symmetric", Role::baseline, 6), sample(1024, "copy", Role::floor, 1),
      sample(1024, "handwritten", Role::handwritten, 2)};
  const SizeComparison out = compare(pointers(results), false);
  CHECK(out.baseline == 6);
  CHECK(out.baseline_name == "nccl-symmetric");
  CHECK(out.floor == 1);
  CHECK(out.plan == &results[0]);
  CHECK(out.by_hand == &results[4]);
  CHECK(ratio(results[0], out, false) == 2);
  CHECK(ratio(results[1], out, false) == Approx(0.6667).epsilon(0.001));
  CHECK(compare(pointers(results), true).baseline == 7);
}

TEST_CASE("a wrong contender is not compared") {
  std::vector<Result> results = {sample(1024, "one", Role::plan, 3),
                                 sample(1024, "two", Role::plan, 4),
                                 sample(1024, "nccl", Role::baseline, 2)};
  results[0].out_of_place->wrong = 5;
  results[2].out_of_place->wrong = 1;
  const SizeComparison out = compare(pointers(results), false);
  CHECK(out.plan == &results[1]);
  CHECK_FALSE(out.baseline);
  CHECK_FALSE(ratio(results[0], out, false));
  CHECK_FALSE(ratio(results[1], out, false));
}

TEST_CASE("results of other modes and offsets are other tables") {
  std::vector<Result> results = {
      sample(1024, "one", Role::plan, 3), sample(2048, "one", Role::plan, 4),
      sample(1024, "one", Role::plan, 7), sample(1024, "one", Role::plan, 9)};
  results[2].mode = "eager";
  results[3].offset = 4;
  CHECK(tables_of(results).size() == 3);
  CHECK(table_name(table_of(results[0])) == "allreduce_f32_sum_graph_4gpus");
  CHECK(table_name(table_of(results[3])) == "allreduce_f32_sum_offset4_graph_4gpus");
}

TEST_CASE("the fastest plan of each size makes a series") {
  const std::vector<Result> results = {
      sample(1024, "small", Role::plan, 2), sample(1024, "large", Role::plan, 4),
      sample(4096, "small", Role::plan, 8), sample(4096, "large", Role::plan, 5),
      sample(4096, "nccl", Role::baseline, 1)};
  const auto tables = tables_of(results);
  const BySize& sizes = tables.begin()->second;
  CHECK(fastest_plans(sizes, false) == Series{{1024, 2}, {4096, 5}});
  CHECK(times_of(sizes, "small", true) == Series{{1024, 3}, {4096, 9}});
}

}  // namespace
}  // namespace mscclc::bench
