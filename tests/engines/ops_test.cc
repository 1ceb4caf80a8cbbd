// Every op, format, type and reduction on every engine: the bits that the simulator gives, in an
// order of threads as it comes, and in adversarial ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "executor/testing/op_plans.h"
#include "ir/support/sanitized.h"
#include "tests/engines/engine_trial.h"

namespace mscclc {
namespace {

using namespace testing;

bool carries(PacketFormat format, const DtypeInfo& type) {
  return !is_sentinel(format) || type.kind == DtypeKind::kFloat;
}

constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                    ReduceOp::avg};
constexpr uint64_t kSizes[] = {0, 24, 240, 4608};  ///< bytes
constexpr uint64_t kSeeds = testing::amount(2, 4, 6);
/// Of calls with sums that are zero: all engines and reductions take turns.
constexpr uint64_t kZeroTurns = testing::amount(13, 3, 1);

/// Calls fn(plan, format, program) for every op plan in every format.
template <class Fn>
void for_each_op_plan(Fn fn) {
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) fn(plan, format, plan.build(format).program);
  }
}

TEST_CASE("every op, format, type and reduction gives the simulator's bits on every engine") {
  std::map<Engine, int> ran;
  for_each_op_plan([&](const OpPlan& plan, PacketFormat format, const Program& program) {
    EngineTrial trial(program);
    uint64_t turn = 0;
    for (const DtypeInfo& type : dtype_table()) {
      if (!carries(format, type)) continue;
      for (const ReduceOp op : kReductions) {
        if (op != ReduceOp::sum && !program.contract.reduces()) continue;
        if (kSanitized && op != ReduceOp::sum && op != kReductions[turn % 5]) continue;
        for (const Engine engine : kEngines) {
          // Sizes and places take turns.
          ++turn;
          const EngineSpec spec{.bytes = kSizes[turn / 3 % 4],
                                .dtype = type.dtype,
                                .op = op,
                                .shifted = turn / 3 % 3 == 0,
                                .engine = engine,
                                .threads = turn % 5 == 0 ? 96u : 32u};
          INFO(plan.name << ' ' << name(format) << ": " << text(spec));
          CHECK(trial.fault(spec).value_or("") == "");
          ran[engine] += trial.had_engine();
        }
      }
    }
  });
  for (const Engine engine : kEngines) CHECK(ran[engine] > 10);
}

/// Do its blocks wait for signals? Of these there must have been as many as of calls.
bool has_waits(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.ops, [](const Op& op) { return op.kind == OpKind::wait; });
  });
}

TEST_CASE("calls round the end of 32 bits give the simulator's bits on every engine") {
  int ran = 0;
  for_each_op_plan([&](const OpPlan& plan, PacketFormat format, const Program& program) {
    if (has_waits(program)) return;
    EngineTrial trial(program);
    ++ran;
    for (const Engine engine : kEngines) {
      for (const uint64_t first : {0xfffffffdu, 0xffffffffu}) {
        const EngineSpec spec{
            .bytes = 240, .engine = engine, .calls = 6, .threads = 32, .first_call = first};
        INFO(plan.name << ' ' << name(format) << ": " << text(spec));
        CHECK(trial.fault(spec).value_or("") == "");
      }
    }
  });
  CHECK(ran > 10);
}

TEST_CASE("a sum that is zero is +0.0 on every engine, in every format") {
  for_each_op_plan([&](const OpPlan& plan, PacketFormat format, const Program& program) {
    if (!program.contract.reduces()) return;
    EngineTrial trial(program);
    uint64_t turn = 0;
    for (const DtypeInfo& type : dtype_table()) {
      if (!carries(format, type) || type.kind != DtypeKind::kFloat) continue;
      for (const ReduceOp op : kReductions) {
        for (const Engine engine : kEngines) {
          if (++turn % kZeroTurns != 0) continue;
          const EngineSpec spec{.bytes = 4608,
                                .dtype = type.dtype,
                                .op = op,
                                .shifted = turn % 2 == 0,
                                .zeros = true,
                                .engine = engine,
                                .seed = 2,
                                .calls = 2,
                                .threads = 32};
          INFO(plan.name << ' ' << name(format) << ": " << text(spec));
          CHECK(trial.fault(spec).value_or("") == "");
        }
      }
    }
  });
}

TEST_CASE("a reduction that ops name gives the simulator's bits on every engine") {
  for_each_op_plan([&](const OpPlan& plan, PacketFormat format, Program program) {
    if (!program.contract.reduces()) return;
    for (const ReduceOp named : kReductions) {
      if (testing::kSanitized && named != ReduceOp::avg) continue;
      for (Rank& rank : program.ranks) {
        for (Op& op : rank.ops) {
          if (info(op.kind).has(kReduces)) op.reduce = named;
        }
      }
      EngineTrial trial(program);
      for (const Engine engine : kEngines) {
        const EngineSpec spec{.bytes = 240, .op = named, .engine = engine, .threads = 32};
        INFO(plan.name << ' ' << name(format) << ": " << text(spec));
        CHECK(trial.fault(spec).value_or("") == "");
      }
    }
  });
}

TEST_CASE("threads of engines may run in any order") {
  for_each_op_plan([&](const OpPlan& plan, PacketFormat format, const Program& program) {
    EngineTrial trial(program);
    for (const Engine engine : kEngines) {
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const EngineSpec spec{.bytes = kSizes[1 + seed % 3],
                              .dtype = seed % 2 == 0 ? Dtype::f32 : Dtype::bf16,
                              .shifted = seed % 3 == 0,
                              .engine = engine,
                              .seed = seed,
                              .calls = 4,
                              .threads = 32 * static_cast<uint32_t>(1 + seed % 2)};
        INFO(plan.name << ' ' << name(format) << ": " << text(spec));
        CHECK(trial.fault(spec).value_or("") == "");
      }
    }
  });
}

}  // namespace
}  // namespace mscclc
