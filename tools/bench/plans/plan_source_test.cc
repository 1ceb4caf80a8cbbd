#include "tools/bench/plans/plan_source.h"

#include <catch2/catch.hpp>

namespace mscclc::bench {
namespace {

TEST_CASE("programs are compiled for the ranks, and distinguished by their parameters") {
  PlanSource source(4, 0);
  source.add("plans/allreduce_1shot.mscl");
  source.add("plans/allreduce_1shot.mscl:B=2");
  source.add("plans/allgather_direct.mscl");
  CHECK(source.left_out().empty());
  const auto plans = source.plans_for(CollectiveKind::allreduce, 4, LinkKind::nvlink);
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].program->name == "allreduce_1shot");
  CHECK(plans[0].ordered_by == "meeting");
  CHECK(plans[1].program->name == "allreduce_1shot:B=2");
  CHECK(plans[1].program->ranks[0].blocks == 2);
  CHECK(source.plans_for(CollectiveKind::allreduce, 8, LinkKind::nvlink).empty());
  CHECK(source.collectives() == std::vector{CollectiveKind::allreduce, CollectiveKind::allgather});
}

TEST_CASE("the root is the one asked for") {
  PlanSource source(4, 2);
  source.add("plans/broadcast_direct.mscl");
  const auto plans = source.plans_for(CollectiveKind::broadcast, 4, LinkKind::nvlink);
  REQUIRE(plans.size() == 1);
  CHECK(plans[0].program->contract.root == 2);
}

TEST_CASE("what cannot be used is left out, and the rest stays") {
  PlanSource source(4, 0);
  source.add("plans/no_such.mscl");
  source.add("plans/allreduce_1shot.mscl:Q=1");
  source.add("plans/allreduce_1shot.mscl:R=8");
  source.add("plans/sendrecv.mscl");
  REQUIRE(source.left_out().size() == 3);
  CHECK(source.left_out()[0].why.find("no_such.mscl") != std::string::npos);
  CHECK(source.left_out()[1].who == "plans/allreduce_1shot.mscl:Q=1");
  CHECK(source.left_out()[2].why.find("it is for 8 ranks") != std::string::npos);
  CHECK(source.plans_for(CollectiveKind::sendrecv, 4, LinkKind::nvlink).size() == 1);
}

TEST_CASE("what the library names for several calls and links is left out once") {
  Diagnostics diagnostics;
  const auto table = LibraryTable::parse(
      R"({"rows": [{"collective": "allreduce", "ranks": "any", "bytes": 1024, "dtypes": "any",
                    "program": "no_such", "params": {"B": 1}},
                   {"collective": "allreduce", "ranks": "any", "bytes": 4096, "dtypes": "any",
                    "program": "allreduce_1shot", "params": {"B": 1}},
                   {"collective": "allreduce", "ranks": "any", "bytes": null, "dtypes": "any",
                    "program": "no_such", "params": {"B": 1}}]})",
      "test", diagnostics);
  REQUIRE(table);
  PlanSource source(4, 0);
  source.add({"plans/", *table}, {{}, {1024, 4096, 65536}, {Dtype::f32}});
  REQUIRE(source.left_out().size() == 1);
  CHECK(source.left_out()[0].who == "plans/no_such.mscl:B=1");
  CHECK(source.plans_for(CollectiveKind::allreduce, 4, LinkKind::nvlink).size() == 1);
}

TEST_CASE("over several nodes the library gives the programs that are for them") {
  Diagnostics diagnostics;
  const auto library = open_library("plans", diagnostics);
  REQUIRE(library);
  PlanSource source(4, 0, 2);
  source.add(*library, {{CollectiveKind::allgather}, {1024, 64u << 20}, {Dtype::f32}});
  CHECK(source.left_out().empty());
  std::vector<std::string> names;
  for (const BenchPlan& plan : source.plans_for(CollectiveKind::allgather, 4, LinkKind::pcie)) {
    names.push_back(plan.program->name);
  }
  CHECK(names == std::vector<std::string>{"allgather_hier_packets:world=4,gpus=2",
                                          "allgather_hier:world=4,gpus=2"});
}

TEST_CASE("the library gives what its table picks, for the calls that it picks it for") {
  Diagnostics diagnostics;
  const auto library = open_library("plans", diagnostics);
  REQUIRE(library);
  const auto& table = library->table;
  PlanSource source(4, 1);
  const std::vector<uint64_t> sizes = {1024, 65536, 1u << 20, 64u << 20};
  const auto links = GENERATE(LinkKind::own, LinkKind::nvlink, LinkKind::pcie);
  source.add(*library, {{}, sizes, {Dtype::f32}});
  CHECK(source.left_out().empty());
  CHECK(source.collectives() == table.collectives());
  for (const CollectiveKind kind : table.collectives()) {
    for (const uint64_t bytes : sizes) {
      for (const bool in_place : {false, true}) {
        INFO(name(kind) << " " << bytes << (in_place ? " in place" : "") << " " << name(links));
        std::vector<std::string> names;
        for (const BenchPlan& plan : source.plans_for(kind, 4, links)) {
          const Range& range = plan.program->select.sizes;
          if (plan.in_place == (in_place ? InPlace::no : InPlace::yes)) continue;
          if (range.min <= bytes && bytes <= range.max) names.push_back(plan.program->name);
        }
        const LibraryChoice* choice = table.choose({.kind = kind,
                                                    .ranks = 4,
                                                    .bytes = bytes,
                                                    .dtype = Dtype::f32,
                                                    .in_place = in_place,
                                                    .links = links});
        CHECK(names == std::vector{choice->program + ":" + choice->params_text()});
      }
    }
  }
}

}  // namespace
}  // namespace mscclc::bench
