// Lines of a tuner file: they select what they were made of, and nothing that they cannot
// distinguish.
#include "tools/report/registry_tuner.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

constexpr uint64_t kEveryLargerSize = ~uint64_t{0};

CoveredCalls calls(CollectiveKind kind, std::vector<CoveredSizes> sizes, bool in_place = false) {
  return {{.kind = kind, .ranks = 4, .in_place = in_place}, {Dtype::f32}, std::move(sizes)};
}

TEST_CASE("a line for what has one plan whatever type and placement") {
  const Coverage coverage{
      {calls(CollectiveKind::allreduce, {{0, 999, "a", {}}, {1000, kEveryLargerSize, "b", {}}}),
       calls(CollectiveKind::allreduce,
             {{0, 499, "a", {}},
              {500, 1999, "b", {}},
              {2000, 2999, "", {}},
              {3000, kEveryLargerSize, "b", {}}},
             true)},
      {}};
  const TunerChoices made = tuner_choices(coverage);
  using Lines = std::vector<TunerLine>;
  const auto kind = CollectiveKind::allreduce;
  CHECK(made.lines ==
        Lines{{.kind = kind, .min = 0, .max = 499, .algorithm = "a", .nodes = 1, .ranks = 4},
              {.kind = kind, .min = 1000, .max = 1999, .algorithm = "b", .nodes = 1, .ranks = 4},
              {.kind = kind,
               .min = 3000,
               .max = kTunerNoEnd,
               .algorithm = "b",
               .nodes = 1,
               .ranks = 4}});
  CHECK(made.left_out ==
        std::vector<std::string>{"allreduce over 4 ranks on 1 node, 500 to 999 bytes: the plan "
                                 "depends on type or placement",
                                 "allreduce over 4 ranks on 1 node, 2000 to 2999 bytes: the plan "
                                 "depends on type or placement"});
  Diagnostics diagnostics;
  const auto text = write_tuner_csv(made.lines, diagnostics);
  REQUIRE(text.has_value());
  const auto again = read_tuner_csv(*text, "again", diagnostics);
  REQUIRE(again.has_value());
  const PlanSelector select = tuner_selector(*again);
  PlanRequest request{.call = {.kind = kind, .ranks = 4, .bytes = 1500}};
  CHECK(select(request).plan == "b");
  request.call.bytes = 700;
  CHECK(select(request).kind == Selection::Kind::usual);
  request.call.bytes = uint64_t{1} << 40;
  CHECK(select(request).plan == "b");
  request.call.ranks = 8;
  CHECK(select(request).kind == Selection::Kind::usual);
}

TEST_CASE("sizes without a plan, and sizes of more than 32 bits") {
  const uint64_t far = (uint64_t{1} << 32) + 999;
  const Coverage coverage{
      {calls(CollectiveKind::allgather,
             {{0, 9, "", {}}, {10, far, "a", {}}, {far + 1, kEveryLargerSize, "b", {}}})},
      {}};
  const TunerChoices made = tuner_choices(coverage);
  REQUIRE(made.lines.size() == 2);
  CHECK(made.lines[0].min == 10);
  CHECK(made.lines[0].max == far);
  CHECK(made.lines[1].min == far + 1);
  CHECK(made.lines[1].max == kTunerNoEnd);
  CHECK(made.left_out ==
        std::vector<std::string>{"allgather over 4 ranks on 1 node, 0 to 9 bytes: no plan"});
}

TEST_CASE("collectives that lines cannot name") {
  const Coverage coverage{{calls(CollectiveKind::broadcast, {{0, kEveryLargerSize, "a", {}}}),
                           calls(CollectiveKind::alltoall, {{0, kEveryLargerSize, "b", {}}})},
                          {}};
  const TunerChoices made = tuner_choices(coverage);
  CHECK(made.lines.empty());
  CHECK(made.left_out ==
        std::vector<std::string>{
            "broadcast over 4 ranks on 1 node, 0 bytes and more: a plan serves one root, and lines "
            "name none",
            "alltoall over 4 ranks on 1 node, 0 bytes and more: NCCL's tuner files do not know "
            "it"});
}

}  // namespace
}  // namespace mscclc
