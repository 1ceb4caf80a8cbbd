// What ranks hear that load different plans, or a plan that some cannot take: all learn of it, and
// the communicator goes on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

std::shared_ptr<const Program> plan_over(std::string_view name, const char* ranks) {
  const CompiledWorld world(name, {{"R", ranks}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

TEST_CASE("ranks that load different plans get an error") {
  const auto one = plan_over("allreduce_2shot", "2"), other = plan_over("allreduce_ring", "2");
  const auto load = [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto& plan = communicator.rank() == 0 ? one : other;
    const auto executable = communicator.load(plan, {}, diagnostics);
    if (executable != nullptr) return std::string("it is loaded");
    const std::string said = testing::text(diagnostics);
    // The communicator goes on.
    Diagnostics again;
    return communicator.load(one, {}, again) == nullptr ? testing::text(again) : said;
  };
  const auto said = testing::threads(2, load);
  CHECK_THAT(said[0],
             Catch::StartsWith("error: ranks load different plans: the hash of rank 0's is "));
  CHECK(std::count(said[0].begin(), said[0].end(), '\n') == 1);  // once
  CHECK(said[1] == said[0]);
}

TEST_CASE("ranks that load a plan differently get an error") {
  const auto plan = plan_over("allreduce_2shot", "2");
  const auto load = [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const LoadOptions options{.max_bytes = communicator.rank() == 0 ? 1024u : 2048u,
                              .zero_copy = communicator.rank() == 1};
    const bool done = communicator.load(plan, options, diagnostics) != nullptr;
    return done ? std::string("it is loaded") : testing::text(diagnostics);
  };
  const auto said = testing::threads(2, load);
  CHECK(said[0] ==
        "error: ranks load the plan differently: rank 0 for 1024 bytes at most, elements of 4 "
        "bytes, rank 1 for 2048 bytes at most, elements of 4 bytes, zero copy\n");
  CHECK(said[1] == said[0]);
}

TEST_CASE("what one rank cannot do all ranks learn") {
  const auto fits = plan_over("allreduce_2shot", "2"), other = plan_over("allreduce_2shot", "3");
  const auto load = [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto& plan = communicator.rank() == 0 ? other : fits;
    const auto executable = communicator.load(plan, {}, diagnostics);
    return executable != nullptr ? "it is loaded" : testing::text(diagnostics);
  };
  const auto said = testing::threads(2, load);
  CHECK(said[0] == "error: the plan is for 3 ranks; the communicator has 2\n");
  CHECK(said[1] ==
        "error: rank 0 cannot take the plan: the plan is for 3 ranks; the communicator has 2\n");
}

TEST_CASE("what several ranks cannot do alike is said once") {
  const auto fits = plan_over("allreduce_2shot", "4"), other = plan_over("allreduce_2shot", "3");
  const auto load = [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto& plan = communicator.rank() == 2 ? fits : other;
    const auto executable = communicator.load(plan, {}, diagnostics);
    return executable != nullptr ? "it is loaded" : testing::text(diagnostics);
  };
  const auto said = testing::threads(4, load);
  const std::string why = "the plan is for 3 ranks; the communicator has 4\n";
  CHECK(said[2] == "error: ranks 0, 1 and 3 cannot take the plan: " + why);
  for (const uint32_t r : {0u, 1u, 3u}) {
    CHECK(said[r] == "error: " + why + "note: so ranks 0, 1 and 3 cannot take the plan\n");
  }
}

TEST_CASE("what no rank can do has one text") {
  const auto other = plan_over("allreduce_2shot", "3");
  const auto load = [&](Communicator& communicator) {
    Diagnostics diagnostics;
    (void)communicator.load(other, {}, diagnostics);
    return testing::text(diagnostics);
  };
  for (const std::string& said : testing::threads(4, load)) {
    CHECK(said ==
          "error: the plan is for 3 ranks; the communicator has 4\n"
          "note: so ranks 0 to 3 cannot take the plan\n");
  }
}

}  // namespace
}  // namespace mscclc
