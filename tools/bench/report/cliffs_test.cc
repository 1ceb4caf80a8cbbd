#include "tools/bench/report/cliffs.h"

#include <catch2/catch.hpp>

#include "tools/bench/results/sample_results.h"

namespace mscclc::bench {
namespace {

TEST_CASE("time may double and a tenth from a size to its double") {
  std::vector<Result> results = {sample(1024, "one", Role::plan, 10),
                                 sample(2048, "one", Role::plan, 22)};
  for (Result& r : results) r.in_place.reset();
  CHECK(find_cliffs(results).empty());
  CHECK(count_steps(results) == 1);
  results[1].out_of_place->time = 22.01;
  const auto cliffs = find_cliffs(results);
  REQUIRE(cliffs.size() == 1);
  CHECK(cliff_text(cliffs[0]) ==
        "allreduce_f32_sum_graph_4gpus, out of place: 10.00 us at 1024 bytes, 22.01 us at 2048 "
        "bytes (22.00 would be no cliff)\n");
}

TEST_CASE("in place is looked at too") {
  std::vector<Result> results = {sample(1024, "one", Role::plan, 10),
                                 sample(2048, "one", Role::plan, 10)};
  results[1].in_place->time = 25;
  const auto cliffs = find_cliffs(results);
  REQUIRE(cliffs.size() == 1);
  CHECK(cliffs[0].in_place);
}

TEST_CASE("the fastest plan of each size counts, baselines do not") {
  CHECK(find_cliffs(std::vector{sample(1024, "small", Role::plan, 2),
                                sample(2048, "small", Role::plan, 9),
                                sample(2048, "large", Role::plan, 4),
                                sample(1024, "nccl", Role::baseline, 2),
                                sample(2048, "nccl", Role::baseline, 50)})
            .empty());
}

TEST_CASE("tables are looked at on their own") {
  std::vector<Result> results = {sample(1024, "one", Role::plan, 2),
                                 sample(2048, "one", Role::plan, 9)};
  results[1].mode = "eager";
  CHECK(count_steps(results) == 0);
}

}  // namespace
}  // namespace mscclc::bench
