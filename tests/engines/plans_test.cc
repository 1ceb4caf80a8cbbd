// Plans on every engine, against the simulator: those of the library and of the examples, the small
// ones that judges of plans are compared on, and random ones that are proved. Threads run as they
// come, and in adversarial orders.
#include <algorithm>
#include <catch2/catch.hpp>

#include "ir/print/print.h"
#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "tests/engines/engine_trial.h"
#include "tests/explore/mutants.h"
#include "tests/library/library.h"
#include "tests/random_programs/trial.h"

namespace mscclc {
namespace {

using testing::amount;
using testing::if_sanitized;

constexpr size_t kMaxRanks = if_sanitized(3, 5);
constexpr uint64_t kSmall = amount(100, 300, 800);    ///< tiny plans
constexpr uint64_t kRandom = amount(150, 500, 1500);  ///< random programs

/// Runs a plan on an engine in one of several ways, which `turn` chooses; "" if all is right.
std::string fault(EngineTrial& trial, const Program& program, Engine engine, uint64_t turn,
                  Dtype dtype = Dtype::f32, ReduceOp op = ReduceOp::sum, bool in_place = false) {
  constexpr uint64_t kSizes[] = {144, 1024, 24, 6144, 0};
  const bool adversarial = turn % 3 != 0;
  const uint64_t bytes = kSizes[turn % 5] * program.ranks.size();
  const EngineSpec spec{.bytes = adversarial ? std::min<uint64_t>(bytes, 2048) : bytes,
                        .dtype = dtype,
                        .op = op,
                        .in_place = in_place,
                        .shifted = turn % 7 == 3,
                        .engine = engine,
                        .seed = adversarial ? turn : 0,
                        .calls = 4,
                        .threads = turn % 11 == 0 ? 64u : 32u};
  const auto found = trial.fault(spec);
  return found ? text(spec) + ": " + *found : "";
}

/// Plans of the worlds that are small enough, without those that do not take every size.
void check_programs(const std::vector<LibraryProgram>& programs) {
  uint64_t turn = 0;
  for (const LibraryProgram& entry : programs) {
    for (const Defines& defines : entry.worlds) {
      if (std::stoul(defines[0].second) > kMaxRanks) continue;  // need not be compiled
      const CompiledWorld world(entry.name, defines);
      INFO(entry.name << ' ' << text(defines) << world.errors());
      REQUIRE(world.errors() == "");
      if (world.program().ranks.size() > kMaxRanks) continue;
      if (world.program().contract.even_only) continue;
      if (world.program().contract.columns != 0) continue;  // no engine has row functions
      EngineTrial trial(world.program());
      const auto dtypes = world.dtypes();
      const auto ops = world.reductions();
      const auto places = world.in_place();
      for (uint64_t i = 0; i < 2; ++i) {
        for (const Engine engine : kEngines) {
          ++turn;
          CHECK(fault(trial, world.program(), engine, turn, dtypes[turn % dtypes.size()],
                      ops[turn / 2 % ops.size()], places[i % places.size()]) == "");
        }
      }
    }
  }
}

TEST_CASE("library plans give the simulator's bits on every engine") { check_programs(library()); }

TEST_CASE("plans of examples give the simulator's bits on every engine") {
  check_programs(examples());
}

/// Proved plans, as those that are not may well go wrong.
void check_if_proved(const Program& program, uint64_t turn, uint64_t& proved) {
  Diagnostics diagnostics;
  const Proof proof = prove(program, diagnostics);
  if (!proof.proved) return;
  ++proved;
  const bool in_place = proof.in_place && (!proof.out_of_place || turn % 2 == 0);
  EngineTrial trial(program);
  for (const Engine engine : kEngines) {
    INFO(print_ir(program));
    CHECK(fault(trial, program, engine, turn * 3 + static_cast<uint64_t>(engine), Dtype::f32,
                ReduceOp::sum, in_place) == "");
  }
}

TEST_CASE("small plans and their mutants run right on every engine, if they are proved") {
  Dice dice(7);
  uint64_t proved = 0;
  for (uint64_t i = 0; i < kSmall; ++i) check_if_proved(mutant(dice).program, i, proved);
  CHECK(proved > kSmall / 10);
}

TEST_CASE("random plans run right on every engine, if they are proved") {
  uint64_t proved = 0;
  for (uint64_t piece = 0; piece < kRandom; ++piece) {
    const auto program = random_programs::load(random_programs::random_program(3, piece));
    // Row functions are run by compiled kernels alone.
    if (program && program->functions.empty()) check_if_proved(*program, piece, proved);
  }
  CHECK(proved > kRandom / 5);
}

}  // namespace
}  // namespace mscclc
