// After a call that gave up, the calls of its rank that are queued do nothing, on every engine.
#include "tests/engines/giving_up.h"

#include <catch2/catch.hpp>

#include "executor/testing/test_plans.h"
#include "tests/engines/engine_trial.h"

namespace mscclc {
namespace {

using namespace testing;
using cuda::CudaRanks;

constexpr uint64_t kOrders = 6;

CudaRanks::Options options_of(Engine engine, bool early, uint64_t seed) {
  return {.offset = engine == Engine::fast && seed % 3 == 2 ? 4u : 0u,  // uneven
          .carried = seed % 2 == 0,
          .in_short = engine == Engine::short_,
          .generic = engine == Engine::generic,
          .threads = seed % 2 == 0 ? 64u : 32u,
          .early = early,
          .frees_next = seed % 2 == 0 ? 0u : ~0u};
}

/// Calls fn(options, seed) for every engine, launches that may begin early or not, and orders of
/// threads.
template <class Fn>
void for_each_way(Fn fn) {
  for (const Engine engine : kEngines) {
    for (const bool early : {false, true}) {
      for (uint64_t seed = 0; seed < kOrders; ++seed) {
        INFO(text({.engine = engine, .seed = seed}) << (early ? ", early" : ""));
        fn(options_of(engine, early, seed), seed);
      }
    }
  }
}

/// Of sums in each format, whose blocks wait for nothing.
template <class Fn>
void for_each_way_of_sums(Fn fn) {
  for (const PacketFormat format :
       {PacketFormat::none, PacketFormat::LL8, PacketFormat::LL128, PacketFormat::sentinel}) {
    const TestProgram t = sums_apart(format);
    CudaRanks ranks(t.program);
    Diagnostics diagnostics;
    REQUIRE(ranks.build(diagnostics));
    INFO(name(format));
    for_each_way(
        [&](const CudaRanks::Options& options, uint64_t seed) { fn(ranks, options, seed); });
  }
}

TEST_CASE("a block that waits for nothing sends nothing once another of its rank has given up") {
  for_each_way_of_sums([](CudaRanks& ranks, const CudaRanks::Options& options, uint64_t seed) {
    CHECK(sum_after_giving_up(ranks, options, seed) == 11.0f);
  });
}

TEST_CASE("calls that do nothing are not counted, or one would look like the one that gave up") {
  for_each_way_of_sums([](CudaRanks& ranks, const CudaRanks::Options& options, uint64_t seed) {
    CHECK(counts_stand_after_giving_up(ranks, options, seed) == true);
  });
}

// Two calls at once could mix their marks: one that begins early waits for packets only once the
// kernel ahead has ended.
TEST_CASE("blocks are marked by one call alone, the first that gives up") {
  for_each_way_of_sums([](CudaRanks& ranks, CudaRanks::Options options, uint64_t seed) {
    for (const uint64_t first : {2, 3, 5}) {
      options.first_call = first;
      CHECK(marked_by_first_to_give_up(ranks, options, 3 * seed + first) == true);
    }
  });
}

TEST_CASE("all blocks of calls that do nothing have begun") {
  std::vector<TestProgram> plans = {sums_apart(PacketFormat::none), with_syncs(two_shot(3))};
  for (const PacketFormatInfo& format : packet_formats()) {
    plans.push_back(one_shot(2, 3, format.format));
    plans.push_back(one_shot(4, 2, format.format));
    plans.push_back(exchange_of_packets(3, format.format, true));
    plans.push_back(sums_apart(format.format));
  }
  for (const TestProgram& t : plans) {
    CudaRanks ranks(t.program);
    Diagnostics diagnostics;
    REQUIRE(ranks.build(diagnostics));
    for_each_way([&](const CudaRanks::Options& options, uint64_t seed) {
      CHECK(begun_after_giving_up(ranks, options, seed) == 3 * blocks_of(t.program));
    });
  }
}

}  // namespace
}  // namespace mscclc
