// A slice of the recorded runs: what is proved is not seen wrong, and of every family there are
// programs that are proved and programs that are refused. What was once proved and wrong is
// refused.
#include <catch2/catch.hpp>
#include <map>

#include "compiler/compile.h"
#include "passes/prove/model/symmetry.h"
#include "passes/prove/prove.h"
#include "tests/explore/explore.h"
#include "tests/random_programs/known_holes.h"
#include "tests/random_programs/sets.h"
#include "tests/random_programs/trial.h"

namespace mscclc::random_programs {
namespace {

constexpr uint64_t kPrograms = 1000, kSets = 150;

TEST_CASE("no random program is proved and wrong") {
  std::map<std::string, std::map<Outcome, int>> outcomes;
  int proved = 0, explored = 0, wrong = 0;
  std::map<Outcome, int> with_credits;  // that channels begin with
  for (uint64_t piece = 0; piece < kPrograms; ++piece) {
    const RandomProgram random = random_program(1, piece);
    const auto program = load(random);
    if (!program) continue;
    TrialOptions options{.runs = 12, .whole_granules = random.sketch.repeats};
    if (piece % 8 != 0) options.explorations = 0;
    const Tried tried = try_program(*program, piece, options);
    INFO("piece " << piece << ": " << tried.why << '\n' << random.text());
    CHECK(tried.outcome != Outcome::hole);
    ++outcomes[random.sketch.family][tried.outcome];
    with_credits[tried.outcome] += random.text().find(" credits: ") != std::string::npos;
    proved += tried.outcome == Outcome::proved;
    wrong += tried.outcome == Outcome::refused_wrong;
    explored += tried.explored;
  }
  CHECK(proved > static_cast<int>(kPrograms) / 4);
  CHECK(wrong > static_cast<int>(kPrograms) / 20);
  CHECK(explored > static_cast<int>(kPrograms) / 50);
  CHECK((with_credits[Outcome::proved] > 0 && with_credits[Outcome::refused_wrong] > 0));
  for (const auto& [family, counts] : outcomes) {
    INFO(family);
    CHECK(counts.contains(Outcome::proved));
    CHECK(counts.contains(Outcome::refused_wrong));
  }
}

TEST_CASE("no random set of plans is proved and wrong") {
  std::map<Outcome, uint64_t> outcomes;
  uint64_t with_credits = 0;  // that channels begin with, and proved
  for (uint64_t piece = 0; piece < kSets; ++piece) {
    const RandomSet set = random_set(1, piece);
    const Tried tried = try_set(set, piece, {.runs = 12});
    INFO("piece " << piece << ": " << tried.why << '\n' << set.text());
    CHECK(tried.outcome != Outcome::hole);
    ++outcomes[tried.outcome];
    with_credits +=
        tried.outcome == Outcome::proved && set.text().find(" credits: ") != std::string::npos;
  }
  CHECK(outcomes[Outcome::proved] > kSets / 8);
  CHECK(with_credits > 0);
  CHECK(outcomes[Outcome::refused_wrong] > kSets / 20);
}

TEST_CASE("programs of the family 'symmetry' are their own image, except at edges") {
  int seen = 0;
  for (uint64_t piece = 0; piece < kPrograms; ++piece) {
    const RandomProgram random = random_program(2, piece);
    if (random.sketch.family != "symmetry" || !random.sketch.edges.empty()) continue;
    const auto program = load(random);
    if (!program) continue;
    INFO(piece << ": " << random.text());
    CHECK(!proof::Symmetry::find(*program).trivial());
    ++seen;
  }
  CHECK(seen > 10);
}

Program compiled(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto program = compile(sources, sources.add("hole.mscl", text), {}, {}, diagnostics);
  INFO(text << render_text(diagnostics, sources));
  REQUIRE(program);
  return *std::move(program);
}

/// Is it to be refused by the prover as it is, or still an open hole?
bool closed(uint32_t since) { return since <= kProverVersion; }

// Without a round nothing keeps the threads of the two waits apart, and one may take what the other
// is to take.
TEST_CASE("a message of no bytes, which is no call, is not explored") {
  const Program program = compiled(R"(ir 1
program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
rank 0 {
  channel ch = memory(1) to ch
  tb 0 {
    signal ch
    wait ch
    pipeline unit: 64, loop: 0 {
      sync
      copy output[0] <- input[0]
      sync
    }
    signal ch
    wait ch
  }
}
rank 1 {
  channel ch = memory(0) to ch
  tb 0 {
    wait ch
    signal ch
    pipeline unit: 64, loop: 1 {
      sync
      copy output[0] <- input[0]
      sync
    }
    wait ch
    signal ch
  }
}
)");
  CHECK(explore(program, {.bytes = 0}).verdict == Verdict::deadlock);
  const Tried tried = try_program(program, 1, {.runs = 1, .explorations = 40});
  INFO(tried.why);
  CHECK(tried.explored);
  CHECK(tried.outcome == Outcome::proved);
}

TEST_CASE("what was once proved and wrong is refused") {
  for (const KnownHole& hole : known_holes()) {
    INFO(hole.name << '\n' << hole.text);
    Diagnostics diagnostics;
    CHECK(prove(compiled(hole.text), diagnostics).proved == !closed(hole.since));
  }
}

TEST_CASE("the simulator shows what is wrong with it") {
  for (const KnownHole& hole : known_holes()) {
    INFO(hole.name << '\n' << hole.text);
    CHECK(fault_on_host(compiled(hole.text), 1, 1000));
  }
}

TEST_CASE("sets that were once proved and wrong are refused") {
  for (const KnownSetHole& hole : set_holes_of_version_3()) {
    std::vector<Program> plans;
    for (const std::string& text : hole.texts) plans.push_back(compiled(text));
    const Tried tried = try_together(plans, 1, {.runs = 1000, .refused_runs = 1000});
    INFO(hole.name << ": " << tried.why);
    if (closed(hole.since)) {
      CHECK((tried.outcome == Outcome::refused || tried.outcome == Outcome::refused_wrong));
    } else {
      CHECK(tried.outcome == Outcome::hole);
    }
  }
}

TEST_CASE("a program is the same whenever it is made") {
  for (uint64_t piece = 0; piece < 50; ++piece) {
    CHECK(random_program(3, piece).text() == random_program(3, piece).text());
    CHECK(random_set(3, piece).text() == random_set(3, piece).text());
  }
}

}  // namespace
}  // namespace mscclc::random_programs
