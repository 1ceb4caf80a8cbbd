// Programs of the library on the runtime: ranks as threads and as processes, checked against the
// collective's definition.
#include "tests/library/library.h"

#include <catch2/catch.hpp>

#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_processes;
using testing::run_threads;

std::string run_calls(Communicator& communicator, const std::shared_ptr<const Program>& plan) {
  Diagnostics diagnostics;
  RankRunner runner(communicator, plan, {.load = {.max_bytes = 1 << 20}});
  if (!runner.load(diagnostics)) return testing::text(diagnostics);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4}, uint64_t{4096}, uint64_t{100'004}}) {
    const RankResult result = runner.run({.bytes = bytes, .iterations = 4}, diagnostics);
    if (result.run.status != RunStatus::right) {
      return std::to_string(bytes) + ": " + testing::text(diagnostics);
    }
  }
  return "";
}

TEST_CASE("allreduce as threads and as processes") {
  for (const char* name : {"allreduce_ring", "allreduce_2shot", "allreduce_2shot_packets",
                           "allreduce_1shot_sentinel", "allreduce_allpairs"}) {
    const CompiledWorld world(name, {{"R", "2"}});
    REQUIRE(world.errors() == "");
    const auto plan = std::make_shared<const Program>(world.program());
    const auto body = [&](Communicator& c) { return run_calls(c, plan); };
    INFO(name);
    CHECK(run_processes(2, body) == "");
    CHECK(run_threads(2, body) == "");
  }
}

}  // namespace
}  // namespace mscclc
