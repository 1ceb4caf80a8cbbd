// The explorer that leaves out schedules against the one that tries all, on mutants of small plans.
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "executor/testing/test_plans.h"
#include "ir/print/print.h"
#include "tests/explore/explore.h"
#include "tests/explore/mutants.h"

namespace mscclc {
namespace {

using namespace testing;

TEST_CASE("fewer schedules show the same") {
  const char* more = std::getenv("MSCCLC_MUTANTS");
  const int mutants = more == nullptr ? 250 : std::atoi(more);
  Dice dice(22);
  int right = 0, wrong = 0;
  uint64_t all_states = 0, states = 0;
  for (int i = 0; i < mutants; ++i) {
    const TestProgram t = mutant(dice);
    const Exploration all = explore(t.program, {.calls = 3});
    if (all.verdict == Verdict::too_large) continue;
    const Exploration found = explore(t.program, {.calls = 3, .reduced = true});
    INFO(name(all.verdict) << ": " << all.reason << '\n'
                           << name(found.verdict) << ": " << found.reason << '\n'
                           << print_ir(t.program));
    CHECK((found.verdict == Verdict::right) == (all.verdict == Verdict::right));
    (all.verdict == Verdict::right ? right : wrong) += 1;
    if (all.verdict != Verdict::right) continue;
    all_states += all.states;
    states += found.states;
  }
  CHECK(right > mutants / 10);
  CHECK(wrong > mutants / 10);
  INFO(states << " states for " << all_states);
  CHECK(states * 4 < all_states);
}

/// The reader may come between the two, and empty the slot.
TEST_CASE("packets put twice into one slot in a call") {
  for (const uint32_t ranks : {2, 3}) {
    TestProgram t = one_shot(ranks, 1, PacketFormat::sentinel);
    std::vector<Op>& ops = t.program.ranks[0].ops;
    ops.insert(ops.begin(), Op(ops[0]));
    for (const bool reduced : {false, true}) {
      CHECK(explore(t.program, {.calls = 3, .reduced = reduced}).verdict == Verdict::race);
    }
  }
}

/// The reader may see the first, which is what the output held before the call.
TEST_CASE("two packets put into one slot in a call") {
  for (const PacketFormat format : {PacketFormat::LL16, PacketFormat::sentinel}) {
    TestProgram t = one_shot(2, 1, format);
    std::vector<Op>& ops = t.program.ranks[0].ops;
    ops.insert(ops.begin(), Op(ops[0]));
    t.program.set_operands(ops[0], t.program.dsts(ops[1]), std::array{local(kOutput, 0)});
    for (const bool reduced : {false, true}) {
      CHECK(explore(t.program, {.calls = 3, .reduced = reduced}).verdict != Verdict::right);
    }
  }
}

}  // namespace
}  // namespace mscclc
