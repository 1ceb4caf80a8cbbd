// Plans with flags on the engine of GPUs that runs all plans, compiled for the host: in adversarial
// orders of threads the simulator's bits, and beside a thread that has not written the input when a
// call begins.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "executor/cuda/testing/ranks.h"
#include "ir/program/flag_regions.h"
#include "ir/support/sanitized.h"
#include "tests/engines/engine_trial.h"
#include "tests/overlap/flag_plans.h"

namespace mscclc {
namespace {

using cuda::CudaRanks;

constexpr uint64_t kOrders = testing::if_sanitized(3, 12);

void check_orders(const Program& program) {
  EngineTrial trial(program);
  for (const Engine engine : kEngines) {
    for (uint64_t seed = 0; seed < kOrders; ++seed) {
      const uint64_t size = seed % 4 == 3 ? 24 : 144;
      const EngineSpec spec{.bytes = testing::message_for(program, size * program.ranks.size()),
                            .in_place = testing::in_place_for(program, seed % 2 == 1),
                            .shifted = seed % 5 == 3,
                            .engine = engine,
                            .seed = seed,
                            .calls = 4,
                            .threads = seed % 3 == 0 ? 64u : 32u};
      CHECK(trial.fault(spec).value_or("") == "");
    }
  }
}

TEST_CASE("plans with flags give the simulator's bits on the engines of GPUs") {
  for (const char* const name : testing::kOverlapPrograms) {
    for (const char* const ranks : {"2", "3"}) {
      INFO(name << " of " << ranks << " ranks");
      check_orders(testing::flag_plan(testing::overlap_text(name), {{"R", ranks}}));
    }
  }
  std::string text = testing::overlap_text("gemm_reducescatter");
  text.replace(text.find(", raises: K"), 11, ", raises: K, bits: 64, scope: system");
  check_orders(testing::flag_plan(text, {{"R", "2"}, {"K", "3"}}));
}

const testing::FlagDefines kTwice = {{"N", "2"}, {"K", "3"}};

/// The other side of both ranks in one call: flags in any order, each region before its last raise.
void write_and_raise(CudaRanks& ranks, const std::vector<uint8_t>& made, uint64_t seed) {
  std::vector<uint32_t> turns = {0, 0, 0, 1, 1, 1,
                                 2, 2, 2, 3, 3, 3};  // twice the rank, and the flag
  std::shuffle(turns.begin(), turns.end(), std::mt19937_64(seed));
  uint32_t raised[4] = {};
  const size_t half = made.size() / 2;
  for (const uint32_t turn : turns) {
    const uint32_t rank = turn / 2, flag = turn % 2;
    if (++raised[turn] == 3) {
      std::copy_n(made.begin() + static_cast<ptrdiff_t>(flag * half), half,
                  ranks.address(rank, kInput) + flag * half);
    }
    ranks.raise(rank, flag);
    std::this_thread::yield();
  }
}

TEST_CASE("a block of a GPU reads the input after its flag is complete, in each call") {
  const Program program = testing::flag_plan(testing::kThrough, kTwice);
  CudaRanks ranks(program);
  Diagnostics diagnostics;
  REQUIRE(ranks.build(diagnostics));
  ranks.set_patience(0);
  Call call{.part_bytes = 96, .dtype = Dtype::f32};
  REQUIRE(check_call(program, call, diagnostics));
  REQUIRE(ranks.prepare(call, {.threads = 64, .own_flags = true}, diagnostics));
  for (uint64_t c = 0; c < 5; ++c) {
    const std::vector<uint8_t> rubbish(96, 0xa5), made(96, static_cast<uint8_t>(c));
    for (const uint32_t r : {0u, 1u}) REQUIRE(ranks.write(r, kInput, rubbish.data(), diagnostics));
    std::thread other([&] { write_and_raise(ranks, made, c); });
    const bool ran = ranks.run(diagnostics);
    other.join();
    INFO(testing::said_of_flags(diagnostics));
    REQUIRE(ran);
    for (const uint32_t r : {0u, 1u}) {
      std::vector<uint8_t> got(96);
      REQUIRE(ranks.read(r, kOutput, got.data(), diagnostics));
      CHECK(got == made);
    }
  }
}

TEST_CASE("a block of a GPU that waits for a flag too long says for which") {
  const Program program = testing::flag_plan(testing::kThrough, kTwice);
  CudaRanks ranks(program);
  Diagnostics diagnostics;
  REQUIRE(ranks.build(diagnostics));
  Call call{.part_bytes = 96, .dtype = Dtype::f32};
  REQUIRE(check_call(program, call, diagnostics));
  REQUIRE(ranks.prepare(call, {.threads = 32, .own_flags = true}, diagnostics));
  for (uint32_t i = 0; i < 3; ++i) {
    for (const uint32_t flag : {0u, 1u}) ranks.raise(0, flag);
    if (i < 2) ranks.raise(1, 1);
    ranks.raise(1, 0);
  }
  CHECK_FALSE(ranks.run(diagnostics));
  CHECK(ranks.fault(0, 0).what == device::WaitFor::nothing);
  const device::Fault fault = ranks.fault(1, 1);
  CHECK(fault.what == device::WaitFor::flag);
  CHECK(fault.index == 1);
  CHECK(fault.expected == 3);
  CHECK(fault.seen == 2);
}

}  // namespace
}  // namespace mscclc
