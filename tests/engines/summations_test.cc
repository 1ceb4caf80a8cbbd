// Reductions as trees, and exact ones, on every engine: the bits that the simulator gives, which
// are those of the definition (executor/simulator/summations_test.cc).
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <span>

#include "executor/testing/tree_plans.h"
#include "ir/ops/trees.h"
#include "ir/support/sanitized.h"
#include "tests/engines/engine_trial.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr ReduceOp kTreeReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                        ReduceOp::avg};
constexpr uint32_t kTreeSizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 16};
constexpr uint32_t kExactSizes[] = {2, 3, 5, 8};
constexpr uint64_t kTreeTurns = testing::amount(1, 1, 3);

/// All ops that add up, with all formats and types: reductions, sums, engines and places take
/// turns. `vary`: what else differs from turn to turn. Other kernels than the one that runs all
/// plans have no code for more than `max_fast` sources.
void compare_with_simulator(Summation summation, std::span<const uint32_t> sizes, uint32_t max_fast,
                            const std::function<void(uint64_t turn, EngineSpec& spec)>& vary) {
  std::map<Engine, int> ran;
  uint64_t turn = 0;
  for (const OpKind kind : tree_ops()) {
    for (const PacketFormat format : formats_of_tree(kind)) {
      for (const uint32_t n : sizes) {
        const TreePlan made = tree_plan(kind, format, n, summation);
        EngineTrial trial(made.plan.program);
        for (const DtypeInfo& type : dtype_table()) {
          if (is_sentinel(format) && type.kind != DtypeKind::kFloat) continue;
          for (uint64_t i = 0; i < kTreeTurns; ++i) {
            ++turn;
            const Engine engine = kEngines[turn / 5 % 3];
            EngineSpec spec{.bytes = n * (turn % 2 == 0 ? 16 : 1040),
                            .dtype = type.dtype,
                            .op = kTreeReductions[turn % 5],
                            .shifted = turn % 7 == 0,
                            .engine = engine,
                            .seed = turn % 4,
                            .calls = 2,
                            .threads = 32};
            vary(turn, spec);
            INFO(info(kind).name << ' ' << name(format) << ' ' << n << ": " << text(spec));
            CHECK(trial.fault(spec).value_or("") == "");
            ran[engine] += trial.had_engine();
            if (n > max_fast && engine != Engine::generic) CHECK_FALSE(trial.had_engine());
          }
        }
      }
    }
  }
  for (const Engine engine : kEngines) CHECK(ran[engine] > 10);
}

TEST_CASE("trees give the simulator's bits on every engine") {
  compare_with_simulator(Summation::tree, kTreeSizes, kMaxTreeInLine,
                         [](uint64_t turn, EngineSpec& spec) { spec.zeros = turn % 11 == 0; });
}

TEST_CASE("exact sums give the simulator's bits on every engine") {
  compare_with_simulator(Summation::exact, kExactSizes, 2,
                         [](uint64_t turn, EngineSpec& spec) { spec.wide = turn % 3 != 0; });
}

TEST_CASE("exact sums in every accumulation type") {
  const TreePlan made = tree_plan(OpKind::reduce, PacketFormat::none, 16, Summation::exact);
  EngineTrial trial(made.plan.program);
  for (const DtypeInfo& type : dtype_table()) {
    for (const DtypeInfo& sums : dtype_table()) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
        const EngineSpec spec{.bytes = 16 * 1040,
                              .dtype = type.dtype,
                              .accumulate = sums.dtype,
                              .op = op,
                              .wide = true,
                              .engine = Engine::generic,
                              .calls = 1,
                              .threads = 32};
        INFO("in " << sums.name << ": " << text(spec));
        CHECK(trial.fault(spec).value_or("") == "");
      }
    }
  }
}

TEST_CASE("trees in every accumulation type") {
  for (const uint32_t n : {5u, 16u}) {
    const TreePlan made = tree_plan(OpKind::reduce, PacketFormat::none, n);
    EngineTrial trial(made.plan.program);
    for (const DtypeInfo& type : dtype_table()) {
      for (const DtypeInfo& sums : dtype_table()) {
        const EngineSpec spec{.bytes = n * 1040,
                              .dtype = type.dtype,
                              .accumulate = sums.dtype,
                              .engine = Engine::generic,
                              .calls = 1,
                              .threads = 32};
        INFO(n << " in " << sums.name << ": " << text(spec));
        CHECK(trial.fault(spec).value_or("") == "");
      }
    }
  }
}

TEST_CASE("the largest tree on the general engine") {
  const TreePlan made = tree_plan(OpKind::reduce, PacketFormat::none, kMaxTreeSources);
  EngineTrial trial(made.plan.program);
  for (const Dtype dtype : {Dtype::f32, Dtype::e5m2, Dtype::i64}) {
    const EngineSpec spec{.bytes = kMaxTreeSources * 48,
                          .dtype = dtype,
                          .engine = Engine::generic,
                          .calls = 1,
                          .threads = 32};
    CHECK(trial.fault(spec).value_or("") == "");
  }
}

}  // namespace
}  // namespace mscclc
