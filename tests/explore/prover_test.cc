// The prover against the explorer, on mutants of small plans: they agree on which are right.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "ir/print/print.h"
#include "passes/prove/prove.h"
#include "tests/explore/explore.h"
#include "tests/explore/mutants.h"

namespace mscclc {
namespace {

using namespace testing;

TEST_CASE("prover and explorer agree on mutants") {
  const char* more = std::getenv("MSCCLC_MUTANTS");
  const int mutants = more == nullptr ? 80 : std::atoi(more);
  Dice dice(21);
  for (int i = 0; i < mutants; ++i) {
    const TestProgram t = mutant(dice);
    Exploration found = explore(t.program, {.calls = 3});
    const Contract& contract = t.program.contract;
    if (found.verdict == Verdict::right && contract.can_alias() &&
        contract.in_place != InPlace::no) {
      found = explore(t.program, {.calls = 3, .in_place = true});
    }
    if (found.verdict == Verdict::too_large) continue;
    Diagnostics diagnostics;
    const bool proved = prove(t.program, diagnostics).proved;
    INFO(name(found.verdict) << ": " << found.reason << '\n'
                             << render_text(diagnostics, Sources{}) << print_ir(t.program));
    const bool right = found.verdict == Verdict::right;
    CHECK(proved == right);
  }
}

}  // namespace
}  // namespace mscclc
