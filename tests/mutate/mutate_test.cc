// Mutants of the library, one or two of each program (mutate_full has ten thousand): none that the
// prover accepts goes wrong, in any interleaving or under adversarial schedules.
#include "tests/mutate/mutate.h"

#include <catch2/catch.hpp>

#include "ir/print/print.h"
#include "ir/support/sanitized.h"
#include "ir/verify/verify.h"
#include "passes/prove/model/symmetry.h"
#include "passes/prove/prove.h"
#include "tests/mutate/judge.h"
#include "tests/mutate/worlds.h"

namespace mscclc {
namespace {

constexpr int kMutantsEach = testing::amount(1, 1, 2);
/// Of programs whose ranks stand for one another.
constexpr int kSymmetricMutants = testing::amount(8, 8, 20);

TEST_CASE("mutants are the same for the same seed, and all differ from the program") {
  const std::vector<MutateWorld> worlds = mutate_worlds();
  const Program& program = worlds[0].program;
  Mutator one(program, 7), two(program, 7);
  for (int i = 0; i < 20; ++i) {
    const auto a = one.next(), b = two.next();
    REQUIRE((a && b));
    CHECK(a->what == b->what);
    CHECK(print_ir(a->program) == print_ir(b->program));
    INFO(a->what);
    CHECK(print_ir(a->program) != print_ir(program));
  }
}

TEST_CASE("no mutant that is accepted goes wrong") {
  const std::vector<MutateWorld> worlds = mutate_worlds();
  int accepted = 0, refused = 0;
  for (size_t w = 0; w < worlds.size(); ++w) {
    INFO(worlds[w].name);
    Mutator mutator(worlds[w].program, w);
    for (int i = 0; i < kMutantsEach; ++i) {
      const auto mutant = mutator.next();
      if (!mutant) break;
      INFO(mutant->what);
      const Judged judged = judge(mutant->program, {.seeds = 8, .most_states = 3000});
      INFO(judged.reason);
      CHECK(judged.judgement != Judgement::wrong);
      refused += judged.judgement == Judgement::refused;
      accepted += judged.judgement >= Judgement::explored;
    }
  }
  CHECK(refused > accepted);
  CHECK(accepted > 0);
}

TEST_CASE("ranks that stand for all show of a mutant what all ranks show") {
  int accepted = 0, refused = 0;
  const auto compare = [&](const Program& program) {
    if (proof::Symmetry::find(program).trivial()) return;
    Diagnostics all, some;
    const Proof one = prove(program, all, {.symmetry_from = ~uint64_t{0}});
    const Proof other = prove(program, some, {.symmetry_from = 0});
    CHECK(one.proved == other.proved);
    CHECK(one.in_place == other.in_place);
    CHECK(one.keeps_input == other.keeps_input);
    (one.proved ? accepted : refused) += 1;
    if (!one.proved) return;
    CHECK(one.orders == other.orders);
    CHECK(one.between_calls == other.between_calls);
  };
  const std::vector<MutateWorld> worlds = mutate_worlds();
  for (size_t w = 0; w < worlds.size(); ++w) {
    INFO(worlds[w].name);
    compare(worlds[w].program);
    if (proof::Symmetry::find(worlds[w].program).trivial()) continue;
    Mutator mutator(worlds[w].program, w);
    for (int i = 0; i < kSymmetricMutants; ++i) {
      const auto mutant = mutator.next();
      if (!mutant) break;
      Diagnostics ignored;
      if (!verify_structure(mutant->program, ignored)) continue;
      INFO(mutant->what);
      compare(mutant->program);
    }
  }
  CHECK(accepted > 50);
  CHECK(refused > 50);
}

}  // namespace
}  // namespace mscclc
