// load() trusts no claim that a plan is right.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

/// allgather_direct over 4 ranks, in which rank 0 waits for one peer of three at its end.
std::shared_ptr<const Program> weakened() {
  CompiledWorld world("allgather_direct", {{"R", "4"}});
  REQUIRE(world.errors() == "");
  Program plan = world.program();
  auto& ops = plan.ranks[0].ops;
  const auto last =
      std::find_if(ops.rbegin(), ops.rend(), [](const Op& op) { return op.kind == OpKind::wait; });
  REQUIRE(last != ops.rend());
  const auto waits = plan.dsts(*last);
  REQUIRE(waits.size() == 3);
  const Operand first = waits[0];
  plan.set_operands(*last, std::vector{first}, {});
  return std::make_shared<const Program>(std::move(plan));
}

std::vector<std::string> loaded(const std::shared_ptr<const Program>& plan,
                                std::optional<ProofPolicy> proof) {
  return testing::threads(4, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto executable =
        communicator.load(plan, {.max_bytes = 4096, .proof = proof}, diagnostics);
    return (executable == nullptr ? "refused\n" : "loaded\n") + testing::text(diagnostics);
  });
}

TEST_CASE("a plan whose waits cover one peer of three is refused") {
  const auto plan = weakened();
  for (const std::string& said : loaded(plan, {})) {
    CHECK_THAT(said, Catch::StartsWith("refused\n"));
    CHECK_THAT(said,
               Catch::Contains("error: the plan 'allgather_direct' is not proved right, so it "
                               "is not loaded\nnote: 'mscclc verify' shows more; "));
  }
}

TEST_CASE("a plan that is loaded all the same says so") {
  const auto plan = weakened();
  const std::string warning =
      "loaded\nwarning: 'allgather_direct' has not been checked: proofs are skipped "
      "(LoadOptions::proof or MSCCLC_PROOF)\n";
  for (const std::string& said : loaded(plan, ProofPolicy::skip)) CHECK(said == warning);
  ::setenv("MSCCLC_PROOF", "skip", 1);
  const auto by_environment = loaded(plan, {}), asked = loaded(plan, ProofPolicy::require);
  ::unsetenv("MSCCLC_PROOF");
  for (const std::string& said : by_environment) CHECK(said == warning);
  for (const std::string& said : asked) CHECK_THAT(said, Catch::StartsWith("refused\n"));
}

TEST_CASE("a plan that is right is loaded without a word") {
  const CompiledWorld world("allgather_direct", {{"R", "4"}});
  for (const std::string& said : loaded(std::make_shared<const Program>(world.program()), {})) {
    CHECK(said == "loaded\n");
  }
}

}  // namespace
}  // namespace mscclc
