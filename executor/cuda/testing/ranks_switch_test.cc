// Ops of switches by an address at the switch, which the host models: every type and reduction, at
// even and odd addresses. What the switch cannot do goes member by member.
#include <catch2/catch.hpp>
#include <optional>

#include "executor/cuda/host/grid.h"
#include "executor/cuda/testing/same_bits.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"
#include "ir/support/sanitized.h"

namespace mscclc::cuda {
namespace {

using namespace testing;
using Options = CudaRanks::Options;

constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                    ReduceOp::avg};

/// What multimem.ld_reduce does of a call, and what is left to do for an average.
bool switch_adds(Dtype dtype, ReduceOp reduce) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64:
      return reduce == ReduceOp::sum || reduce == ReduceOp::avg;
    case Dtype::f16:
    case Dtype::bf16:
      return reduce == ReduceOp::sum;
    case Dtype::i32:
    case Dtype::u32:
    case Dtype::i64:
    case Dtype::u64:
      return reduce != ReduceOp::prod;
    default:
      return false;
  }
}

struct SwitchPlan {
  std::string name;
  TestProgram plan;
  bool reduces;
};

std::vector<SwitchPlan> switch_plans() {
  std::vector<SwitchPlan> plans;
  for (const OpPlan& plan : op_plans()) {
    if (plan.name != "switch_broadcast" && plan.name != "switch_reduce" &&
        plan.name != "switch_reduce_broadcast") {
      continue;
    }
    plans.push_back({plan.name, plan.build(PacketFormat::none), plan.name != "switch_broadcast"});
  }
  REQUIRE(plans.size() == 3);
  return plans;
}

struct Trial {
  Dtype dtype;
  ReduceOp reduce;
  uint64_t elements;
  Options options;
  uint64_t seed;
  std::optional<Dtype> accumulate = {};
};

/// Runs calls; returns how often the switch was asked.
uint64_t asked(SameBits& both, const Trial& trial) {
  host::Gpu::get().set_seed(trial.seed);
  const uint64_t before = host::Machine::get().gpu_switch.accesses();
  Call call = both.call(trial.elements, trial.dtype, trial.reduce);
  call.accumulate = trial.accumulate.value_or(call.accumulate);
  CHECK(both.run(call, trial.options, 2, trial.seed) == "");
  host::Gpu::get().set_seed(0);
  return host::Machine::get().gpu_switch.accesses() - before;
}

/// Of all plans, types and reductions; `fn(both, what)`.
template <class Fn>
void for_each_call(Fn fn) {
  for (const SwitchPlan& named : switch_plans()) {
    SameBits both(named.plan.program);
    Diagnostics diagnostics;
    REQUIRE(both.build(diagnostics));
    for (const DtypeInfo& type : dtype_table()) {
      for (const ReduceOp reduce : kReductions) {
        if (!named.reduces && reduce != ReduceOp::sum) continue;
        CAPTURE(named.name, type.name, name(reduce));
        fn(both, type.dtype, reduce, !named.reduces || switch_adds(type.dtype, reduce));
      }
    }
  }
}

TEST_CASE("what a switch can do, it does") {
  for_each_call([](SameBits& both, Dtype dtype, ReduceOp reduce, bool by_switch) {
    for (const uint32_t offset : {0u, 16u, info(dtype).bytes, 8u, 12u}) {
      if (offset % info(dtype).bytes != 0) continue;
      for (const uint64_t elements : {1, 51, 1001}) {
        CAPTURE(offset, elements);
        const Options options{.offset = offset, .threads = 32, .multicast = true};
        const uint64_t times = asked(both, {dtype, reduce, elements, options, 0});
        CHECK(both.gpu().has_multicast());
        if (elements == 1001) CHECK((times > 0) == by_switch);
        if (!by_switch) CHECK(times == 0);
      }
    }
  });
}

TEST_CASE("sums in another type than the switch adds up in go member by member") {
  struct Sum {
    Dtype dtype, accumulate;
    bool by_switch;
  };
  for (const SwitchPlan& named : switch_plans()) {
    if (!named.reduces) continue;
    SameBits both(named.plan.program);
    Diagnostics diagnostics;
    REQUIRE(both.build(diagnostics));
    for (const Sum& sum :
         {Sum{Dtype::f32, Dtype::f32, true}, Sum{Dtype::f32, Dtype::f64, false},
          Sum{Dtype::bf16, Dtype::f32, true}, Sum{Dtype::i32, Dtype::i64, false}}) {
      CAPTURE(named.name, info(sum.dtype).name, info(sum.accumulate).name);
      const Options options{.offset = 8, .threads = 32, .multicast = true};
      const Trial trial{sum.dtype, ReduceOp::sum, 1001, options, 0, sum.accumulate};
      CHECK((asked(both, trial) > 0) == sum.by_switch);
    }
  }
}

TEST_CASE("what a switch does, whatever runs first") {
  const uint64_t seeds = if_sanitized(1, 3);
  for_each_call([&](SameBits& both, Dtype dtype, ReduceOp reduce, bool by_switch) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(seed);
      const auto offset = static_cast<uint32_t>(seed % 2 * info(dtype).bytes);
      const Options options{
          .offset = offset, .apart = seed % 2 == 0, .threads = 32, .multicast = true};
      CHECK((asked(both, {dtype, reduce, 301, options, seed}) > 0) == by_switch);
    }
  });
}

TEST_CASE("buffers that lie differently at their members have no place at the switch") {
  for_each_call([](SameBits& both, Dtype dtype, ReduceOp reduce, bool) {
    const Options options{.shifted = true, .threads = 32, .multicast = true};
    CHECK(asked(both, {dtype, reduce, 1001, options, 0}) == 0);
  });
}

TEST_CASE("queued calls by a switch") {
  for_each_call([](SameBits& both, Dtype dtype, ReduceOp reduce, bool by_switch) {
    if (dtype != Dtype::f32 && dtype != Dtype::i32) return;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      CAPTURE(seed);
      const Options options{.apart = true,
                            .threads = 32,
                            .calls = 3,
                            .early = true,
                            .frees_next = static_cast<uint32_t>(seed),
                            .multicast = true};
      CHECK((asked(both, {dtype, reduce, 301, options, seed}) > 0) == by_switch);
    }
  });
}

}  // namespace
}  // namespace mscclc::cuda
