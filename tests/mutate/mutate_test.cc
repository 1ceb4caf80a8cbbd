// Some hundred mutants of the library (mutate_full has ten thousand): none that the prover accepts
// goes wrong, in any interleaving or under adversarial schedules.
#include "tests/mutate/mutate.h"

#include <catch2/catch.hpp>

#include "ir/print.h"
#include "tests/mutate/judge.h"
#include "tests/mutate/worlds.h"

namespace mscclc {
namespace {

constexpr int kMutantsEach = 6;

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

}  // namespace
}  // namespace mscclc
