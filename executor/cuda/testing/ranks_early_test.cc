// Calls that are queued on a stream and begin while the one ahead still runs: results are the
// simulator's, by every engine, whatever runs first.
#include <catch2/catch.hpp>

#include "executor/cuda/host/grid.h"
#include "executor/cuda/testing/same_bits.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"
#include "ir/support/sanitized.h"

namespace mscclc::cuda {
namespace {

using namespace testing;
using Options = CudaRanks::Options;

host::Gpu& gpu() { return host::Gpu::get(); }

/// An engine that calls of a plan are run by, where it has it.
struct Engine {
  const char* name;
  Dtype dtype;
  ReduceOp reduce;
  bool in_short;
};
constexpr Engine kEngines[] = {
    {"interpreter", Dtype::f32, ReduceOp::max, false},
    {"fast", Dtype::f32, ReduceOp::sum, false},
    {"short", Dtype::bf16, ReduceOp::avg, true},
};

struct NamedPlan {
  std::string name;
  TestProgram plan;
};

/// Whole plans, whose calls may follow one another without a meeting of all ranks.
std::vector<NamedPlan> whole_plans() {
  std::vector<NamedPlan> plans;
  for (const PacketFormatInfo& format : packet_formats()) {
    const std::string in = " in " + std::string(format.name);
    plans.push_back({"one-shot of 2" + in, one_shot(2, 3, format.format)});
    plans.push_back({"one-shot of 3" + in, one_shot(3, 2, format.format)});
    plans.push_back({"exchange" + in, exchange_of_packets(3, format.format, true)});
    if (is_sentinel(format.format)) continue;
    plans.push_back({"broadcast" + in, broadcast_of_packets(3, 2, format.format)});
  }
  plans.push_back({"two-shot", with_syncs(two_shot(3))});
  plans.push_back({"two-shot by ports", with_syncs(two_shot_by_ports(3, PacketFormat::LL128))});
  return plans;
}

/// Some calls in a row: some of them let the next one begin at once.
void check_early(const std::string& name, Program program, const Engine& engine, uint64_t seed) {
  program.launch.threads = seed % 2 == 0 ? 64 : 32;  // fibers that poll cost time
  SameBits both(program);
  Diagnostics diagnostics;
  REQUIRE(both.build(diagnostics));
  const ReduceOp reduce = program.contract.reduces() ? engine.reduce : ReduceOp::sum;
  const auto calls = static_cast<uint32_t>(3 + seed % 4);
  for (const uint64_t elements : {200, 776}) {
    if (seed != 0 && elements != 200) continue;
    for (const bool chained : {false, true}) {
      if (chained && !both.can_chain()) continue;
      const Options options{.carried = seed % 2 == 0,
                            .apart = true,
                            .in_short = engine.in_short,
                            .calls = calls,
                            .chained = chained,
                            .early = true,
                            .frees_next = static_cast<uint32_t>(seed % 3 == 0   ? 0
                                                                : seed % 3 == 1 ? ~0u
                                                                                : seed)};
      INFO(name << " by " << engine.name << ", " << elements << " elements, " << calls << " calls"
                << (chained ? ", chained" : "") << ", seed " << seed);
      gpu().set_seed(seed);
      const std::string fault =
          both.run(both.call(elements, engine.dtype, reduce), options, 2, seed);
      CHECK(fault == "");
      CHECK(gpu().most_at_once() <= 2);
    }
  }
  gpu().set_seed(0);
}

TEST_CASE("queued calls that begin early") {
  for (const NamedPlan& named : whole_plans()) {
    for (const Engine& engine : kEngines) check_early(named.name, named.plan.program, engine, 0);
  }
}

TEST_CASE("queued calls that begin early whatever runs first") {
  const uint64_t seeds = amount(1, 2, 6);
  for (const NamedPlan& named : whole_plans()) {
    for (const Engine& engine : kEngines) {
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        check_early(named.name, named.plan.program, engine, seed);
      }
    }
  }
}

TEST_CASE("every op in queued calls that begin early") {
  constexpr uint64_t kSeeds[] = {0, 1, 3};
  size_t turn = 0;  // each engine takes one of them, with each plan another
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      const std::string in = plan.packets ? " in " + std::string(name(format)) : "";
      for (size_t e = 0; e < std::size(kEngines); ++e) {
        for (const uint64_t seed : kSeeds) {
          if (!kThorough && seed != kSeeds[(turn + e) % 3]) continue;
          check_early(plan.name + in, t.program, kEngines[e], seed);
        }
      }
      ++turn;
    }
  }
}

/// Calls of one-shot, of which some begin early.
void prepare_one_shot(CudaRanks& ranks, const Options& options) {
  Diagnostics diagnostics;
  ranks.set_patience(200'000'000);
  REQUIRE(ranks.build(diagnostics));
  Call call{.part_bytes = 4096};
  REQUIRE(check_call(ranks.program(), call, diagnostics));
  REQUIRE(ranks.prepare(call, options, diagnostics));
}

TEST_CASE("calls really run beside one another") {
  const TestProgram t = one_shot(2, 2, PacketFormat::LL16);
  for (const bool early : {false, true}) {
    for (const bool in_short : {false, true}) {
      CudaRanks ranks(t.program);
      prepare_one_shot(ranks, {.apart = true, .in_short = in_short, .calls = 4, .early = early});
      Diagnostics diagnostics;
      gpu().set_seed(1);
      CHECK(ranks.run(diagnostics));
      CHECK(ranks.in_short() == in_short);
      CHECK(gpu().most_at_once() == (early ? 2 : 1));
      gpu().set_seed(0);
    }
  }
}

TEST_CASE("queued calls after one that hangs give up, and leave its report") {
  for (const PacketFormatInfo& format : packet_formats()) {
    const TestProgram t = one_shot(2, 2, format.format);
    for (const bool in_short : {false, true}) {
      for (const uint32_t frees_next : {0u, ~0u}) {
        for (uint64_t seed = 0; seed < 8; ++seed) {
          CAPTURE(format.name, in_short, frees_next, seed);
          CudaRanks ranks(t.program);
          prepare_one_shot(ranks, {.apart = true,
                                   .in_short = in_short,
                                   .silent = 1,
                                   .calls = 4,
                                   .early = true,
                                   .frees_next = frees_next});
          gpu().set_seed(seed);
          for (uint32_t run = 0; run < 2; ++run) {
            Diagnostics diagnostics;
            CHECK(!ranks.run(diagnostics));
            for (const uint32_t block : {0u, 1u}) {
              const device::Fault fault = ranks.fault(0, block);
              CHECK(fault.what == device::WaitFor::packet);
              const bool sentinel = is_sentinel(format.format);
              CHECK(fault.expected == (sentinel ? 0x80000000u : 1u));
              CHECK(t.program.ranks[0].ops[fault.op].kind == OpKind::reduce_packets);
            }
          }
          gpu().set_seed(0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mscclc::cuda
