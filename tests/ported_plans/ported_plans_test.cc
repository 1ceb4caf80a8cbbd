// Ports of MSCCL++'s plans are no worse than these, except for reasons given; the page is current.
#include "tests/ported_plans/ported_plans.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "ir/support/read_file.h"

namespace mscclc {
namespace {

TEST_CASE("every plan of MSCCL++ has a port") {
  std::set<std::string> plans, ported;
  for (const auto& entry : std::filesystem::directory_iterator("tests/mscclpp_plans")) {
    if (entry.path().extension() == ".json") plans.insert(entry.path().stem());
  }
  for (const PortedPlan& port : ported_plans()) {
    INFO(port.plan);
    CHECK(ported.insert(std::string(port.plan)).second);
  }
  CHECK(plans == ported);
}

TEST_CASE("ports need no more ops, synchronisations and scratch, or say why") {
  for (const PortedPlan& port : ported_plans()) {
    DYNAMIC_SECTION(port.plan) {
      const PlanCost theirs = mscclpp_cost(port);
      const auto ours = our_cost(port);
      INFO((ours ? "" : ours.error().text()));
      REQUIRE(ours);
      const bool worse =
          ours->ops > theirs.ops || ours->syncs > theirs.syncs || ours->scratch > theirs.scratch;
      CHECK(worse == !port.excuse.empty());
    }
  }
}

TEST_CASE("docs/design/passes.md is current (bazel run //tests/ported_plans:update)") {
  const std::string page = read_file("docs/design/passes.md").value();
  const auto table = ported_plans_table();
  INFO((table ? "" : table.error().text()));
  REQUIRE(table);
  CHECK(page == with_table(page, *table));
}

}  // namespace
}  // namespace mscclc
