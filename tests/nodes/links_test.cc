// Ranks whose devices say that PCIe joins them, which carries no atomics and no lines of LL128.
#include "runtime/core/device/links.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "runtime/api/host_device.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_threads;

const Link kPcie{LinkKind::pcie, true, false, "as this test has it"};

std::unique_ptr<Device> open_pcie(uint32_t, Diagnostics& diagnostics) {
  return make_host_device(diagnostics, kPcie);
}

/// "" if a few calls of a program of the library are right over PCIe.
std::string run_over_links(const char* name, const Defines& defines, bool processes = false) {
  const CompiledWorld world(name, defines);
  if (!world.errors().empty()) return world.errors();
  const auto plan = std::make_shared<const Program>(world.program());
  const auto body = [&](Communicator& communicator) -> std::string {
    if (communicator.worst_link() != LinkKind::pcie) return "it does not know of PCIe";
    Diagnostics diagnostics;
    RankRunner runner(communicator, plan, {.load = {.max_bytes = 1 << 18}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    for (const uint64_t bytes : {uint64_t{1 << 18}, uint64_t{4096}, uint64_t{100000}}) {
      const RunSpec spec{.bytes = bytes, .iterations = 3};
      if (runner.run(spec, diagnostics).run.status != RunStatus::right) {
        return testing::text(diagnostics);
      }
    }
    return "";
  };
  const auto ranks = static_cast<uint32_t>(plan->ranks.size());
  return processes ? testing::run_processes(ranks, body, {}, open_pcie)
                   : run_threads(ranks, body, {}, open_pcie);
}

TEST_CASE("over PCIe signals are counts that the proxy stores") {
  CHECK(run_over_links("allreduce_2shot", {{"R", "3"}}) == "");
  CHECK(run_over_links("allreduce_ring", {{"R", "4"}}) == "");
  CHECK(run_over_links("alltoall_pipeline", {{"R", "3"}}) == "");      // signals in rounds
  CHECK(run_over_links("allgather_copy_engine", {{"R", "3"}}) == "");  // beside ports
  CHECK(run_over_links("allreduce_hybrid", {{"R", "2"}, {"B", "2"}, {"F", "LL16"}}) == "");
  CHECK(run_over_links("allreduce_ring", {{"R", "3"}}, true) == "");
}

TEST_CASE("over PCIe all ranks refuse packets in LL128") {
  const std::string said =
      run_over_links("allreduce_hybrid", {{"R", "2"}, {"B", "1"}, {"F", "LL128"}});
  const std::string why =
      "packets in LL128 from rank 0 to rank 1 need NVLink: elsewhere a line of 128 bytes may come "
      "in pieces (as this test has it)";
  INFO(said);
  CHECK(said.find("rank 0: ") != std::string::npos);
  CHECK(said.find("error: " + why) != std::string::npos);
  CHECK(said.find("rank 1: ") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
