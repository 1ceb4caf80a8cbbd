// Ports of MSCCL++'s plans are no worse than these, except for reasons given; the page is current.
#include "tests/peer_ports/peer_ports.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "ir/support/read_file.h"

namespace mscclc {
namespace {

TEST_CASE("every plan of the peer has a port") {
  std::set<std::string> plans, ported;
  for (const auto& entry : std::filesystem::directory_iterator("tests/peer_plans")) {
    if (entry.path().extension() == ".json") plans.insert(entry.path().stem());
  }
  for (const PeerPort& port : peer_ports()) {
    INFO(port.plan);
    CHECK(ported.insert(std::string(port.plan)).second);
  }
  CHECK(plans == ported);
}

TEST_CASE("ports need no more ops, synchronisations and scratch, or say why") {
  for (const PeerPort& port : peer_ports()) {
    DYNAMIC_SECTION(port.plan) {
      const PlanCost peer = peer_cost(port);
      const auto ours = our_cost(port);
      INFO((ours ? "" : ours.error().text()));
      REQUIRE(ours);
      const bool worse =
          ours->ops > peer.ops || ours->syncs > peer.syncs || ours->scratch > peer.scratch;
      CHECK(worse == !port.excuse.empty());
    }
  }
}

TEST_CASE("docs/design/passes.md is current (bazel run //tests/peer_ports:update)") {
  const std::string page = read_file("docs/design/passes.md").value();
  const auto table = peer_ports_table();
  INFO((table ? "" : table.error().text()));
  REQUIRE(table);
  CHECK(page == with_table(page, *table));
}

}  // namespace
}  // namespace mscclc
