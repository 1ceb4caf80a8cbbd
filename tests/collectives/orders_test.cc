// Contracts about the bits of sums (docs/bits.md), asked for by calls: what they get, and what they
// are refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "compiler/compile.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "runtime/api/collectives.h"
#include "runtime/api/plan_registry.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kOrderedRanks = 4;

/// Element `i` of a rank: sums of these are rounded, and some are of -0.0 alone.
float element(uint32_t rank, uint64_t i) {
  if (i % 61 == 0) return -0.0F;
  const auto mixed = static_cast<uint32_t>((i * 2654435761U + rank * 40503U) >> 7);
  return (static_cast<float>(mixed % 100003) - 50000.0F) / 977.0F;
}

float from_the_left(uint32_t ranks, uint64_t i) {
  float sum = element(0, i);
  for (uint32_t r = 1; r < ranks; ++r) sum += element(r, i);
  return sum == 0 ? 0.0F : sum;
}

/// The exact sum, rounded once: a double holds the sum of these elements.
float added_exactly(uint32_t ranks, uint64_t i) {
  double sum = 0;
  for (uint32_t r = 0; r < ranks; ++r) sum += static_cast<double>(element(r, i));
  return static_cast<float>(sum);
}

/// One all-reduce of so many floats; "" if its bits are those of the sum from the left, or of the
/// exact one if the call asks for that.
std::string sum_of(Collectives& collectives, CollectiveCall call, bool in_place) {
  Communicator& communicator = collectives.communicator();
  Diagnostics diagnostics;
  const auto memory = communicator.device().allocate(8 * call.count + 64, "floats", diagnostics);
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  if (memory == nullptr || stream == nullptr) return testing::text(diagnostics);
  auto* const from = reinterpret_cast<float*>(memory->data());
  float* const to = in_place ? from : from + call.count + 1;
  for (uint64_t i = 0; i < call.count; ++i) from[i] = element(communicator.rank(), i);
  call.kind = CollectiveKind::allreduce;
  call.input = from;
  call.output = to;
  const bool done =
      collectives.call(call, stream, diagnostics) && communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  if (!done) return testing::text(diagnostics);
  for (uint64_t i = 0; i < call.count; ++i) {
    const bool exact = call.order == SumOrder::exact;
    const float wanted = (exact ? added_exactly : from_the_left)(communicator.size(), i);
    if (std::memcmp(to + i, &wanted, sizeof wanted) == 0) continue;
    return fmt::format("{} elements: element {} is {}, not {}\n", call.count, i, to[i], wanted);
  }
  return "";
}

std::unique_ptr<Collectives> collectives_of(Communicator& communicator, Diagnostics& diagnostics,
                                            const CollectivesOptions& options = {}) {
  return Collectives::create(communicator, testing::compiled_in_library(), options, diagnostics);
}

TEST_CASE("sums in the order of the ranks have the same bits at every size and place") {
  const auto body = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = collectives_of(communicator, diagnostics, {.order = SumOrder::ranks});
    if (made == nullptr) return testing::text(diagnostics);
    for (const uint64_t count : {1, 250, 3000, 20'000, 60'001, 400'000}) {
      for (const bool in_place : {false, true}) {
        const std::string said = sum_of(*made, {.count = count}, in_place);
        if (!said.empty()) return said;
      }
    }
    return "";
  };
  CHECK(testing::run_threads(kOrderedRanks, body) == "");
}

TEST_CASE("exact sums are those at every size and place") {
  const auto body = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = collectives_of(communicator, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    for (const uint64_t count : {1, 250, 3000, 60'001, 2'000'000}) {
      for (const bool in_place : {false, true}) {
        const std::string said =
            sum_of(*made, {.count = count, .order = SumOrder::exact}, in_place);
        if (!said.empty()) return said;
      }
    }
    return "";
  };
  CHECK(testing::run_threads(kOrderedRanks, body) == "");
}

TEST_CASE("a call that no plan serves under its contract says which would serve it otherwise") {
  const auto body = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = collectives_of(communicator, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    return sum_of(*made, {.count = 1024, .op = ReduceOp::prod, .order = SumOrder::exact}, false);
  };
  const std::vector<std::string> said = testing::threads(3, body);
  for (const std::string& one : said) {
    CHECK(one ==
          "error: no plan serves allreduce of 4096 bytes, 'f32', for 3 ranks, under 'exact'\n"
          "note: 'exact' means: the exact sum, rounded once: the same in every order\n"
          "note: the nearest plan is 'allreduce_1shot_ordered:R=3,F=LL16,B=32,T=128,tree=true', "
          "which keeps 'tree'; under that it would serve the call (MSCCLC_ORDER, or the call's own "
          "order)\n");
  }
}

TEST_CASE("all but products of floats can be exact") {
  const auto body = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = collectives_of(communicator, diagnostics, {.order = SumOrder::exact});
    if (made == nullptr) return testing::text(diagnostics);
    const auto chosen = [&](const CollectiveCall& call) {
      return made->choose(call, false, nullptr, diagnostics) != nullptr;
    };
    const CollectiveCall sum{.kind = CollectiveKind::allreduce, .count = 8, .dtype = Dtype::i32};
    CollectiveCall floats = sum;
    floats.dtype = Dtype::f16;
    CollectiveCall largest = floats, product = floats;
    largest.op = ReduceOp::max;
    product.op = ReduceOp::prod;
    return chosen(sum) && chosen(floats) && chosen(largest) && !chosen(product) ? "" : "no";
  };
  CHECK(testing::run_threads(3, body) == "");
  const auto of_two = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = collectives_of(communicator, diagnostics, {.order = SumOrder::exact});
    return made == nullptr ? testing::text(diagnostics) : sum_of(*made, {.count = 5000}, false);
  };
  CHECK(testing::run_threads(2, of_two) == "");
}

/// The plan of an all-reduce over three ranks that each add up for themselves: `sums`. `says`: what
/// its record claims; nullptr: it has none.
std::string plan_that_adds(const std::string& sums, const Proof* says = nullptr,
                           const std::string& select = "") {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add(
      "sum.mscl",
      "program own\ncollective allreduce(ranks: 3)\n" + select +
          "rank r in 0..3 {\n  let others = 0..3 except r\n"
          "  buffer s[others] packets: LL16, copies: 2\n  channel ch[p in others] = memory(p)\n"
          "  tb 0 {\n    for p in others { put_packets ch[p].s[r] <- input }\n    reduce_packets " +
          sums + "\n  }\n}\n");
  const auto program = compile(sources, file, {}, {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  const auto json = write_plan(*program, *find_target("sm_90", diagnostics), diagnostics, says);
  REQUIRE(json);
  return *json;
}

TEST_CASE("a registered plan for other sizes is passed over for these, not for its order") {
  Diagnostics diagnostics;
  const auto registry = PlanRegistry::create({}, diagnostics);
  REQUIRE(registry != nullptr);
  REQUIRE(registry->register_plan(plan_that_adds("output <- input, s[p] for p in others", nullptr,
                                                 "select sizes: 64KiB..1MiB\n"),
                                  "own", diagnostics));
  std::vector<PassedOver> over;
  const PlanRequest request{.call = {.kind = CollectiveKind::allreduce,
                                     .ranks = 3,
                                     .bytes = 4096,
                                     .dtype = Dtype::f32,
                                     .order = SumOrder::ranks}};
  CHECK(registry->pick(request, &over, diagnostics) == nullptr);
  REQUIRE(over.size() == 1);
  CHECK(over[0].why == "it is for 65536 to 1048575 bytes");
}

TEST_CASE("a registered plan is picked only for the contracts that it keeps") {
  Diagnostics diagnostics;
  const auto registry = PlanRegistry::create({}, diagnostics);
  REQUIRE(registry != nullptr);
  const auto pick = [&](SumOrder order, ReduceOp op = ReduceOp::sum, Dtype dtype = Dtype::f32) {
    std::vector<PassedOver> over;
    const PlanRequest request{.call = {.kind = CollectiveKind::allreduce,
                                       .ranks = 3,
                                       .bytes = 4096,
                                       .dtype = dtype,
                                       .op = op,
                                       .order = order}};
    const auto picked = registry->pick(request, &over, diagnostics);
    return picked != nullptr ? picked->name : over.empty() ? "" : over[0].why;
  };
  REQUIRE(registry->register_plan(plan_that_adds("output <- input, s[p] for p in others"), "own",
                                  diagnostics));
  CHECK(pick(SumOrder::any) == "own");
  CHECK(pick(SumOrder::replicated) ==
        "its sums do not keep 'replicated': all ranks that get an element get the same bits");
  CHECK(pick(SumOrder::replicated, ReduceOp::max) == "own");
  CHECK(pick(SumOrder::ranks, ReduceOp::sum, Dtype::i32) == "own");
  REQUIRE(registry->register_plan(
      plan_that_adds("output <- s[p] for p in 0..r, input, s[p] for p in r + 1 .. 3"), "left",
      diagnostics));
  CHECK(pick(SumOrder::replicated) == "left");
  CHECK(pick(SumOrder::ranks) == "left");
  CHECK(pick(SumOrder::tree) == "left");  // of three ranks it is the same sum
  CHECK(pick(SumOrder::exact).starts_with("its sums do not keep 'exact'"));
  REQUIRE(registry->register_plan(plan_that_adds("output <- input, s[p] for p in others exact"),
                                  "whole", diagnostics));
  CHECK(pick(SumOrder::exact) == "whole");
  CHECK(pick(SumOrder::exact, ReduceOp::avg, Dtype::bf16) == "whole");
  CHECK(pick(SumOrder::exact, ReduceOp::prod) != "whole");
}

TEST_CASE("where proofs are skipped, a plan keeps the contracts that its record claims") {
  const std::string own = "output <- input, s[p] for p in others";
  const auto picked = [&](const Proof* says, SumOrder order, Dtype dtype = Dtype::f32) {
    Diagnostics diagnostics;
    const auto registry = PlanRegistry::create({.proof = ProofPolicy::skip}, diagnostics);
    REQUIRE(registry != nullptr);
    REQUIRE(registry->register_plan(plan_that_adds(own, says), "own", diagnostics));
    const PlanRequest request{.call = {.kind = CollectiveKind::allreduce,
                                       .ranks = 3,
                                       .bytes = 4096,
                                       .dtype = dtype,
                                       .order = order}};
    return registry->pick(request, nullptr, diagnostics) != nullptr;
  };
  CHECK(picked(nullptr, SumOrder::any));
  CHECK(picked(nullptr, SumOrder::replicated, Dtype::i32));
  CHECK_FALSE(picked(nullptr, SumOrder::replicated));
  Proof says{.proved = true,
             .orders = {.replicated = true, .ranks = true},
             .out_of_place = true,
             .rounding = Rounding::each_op};
  CHECK(picked(&says, SumOrder::ranks));
  CHECK(picked(&says, SumOrder::replicated));
  CHECK_FALSE(picked(&says, SumOrder::exact));
  CHECK_FALSE(picked(&says, SumOrder::ranks, Dtype::bf16));  // rounded on the way
  says.orders.ranks = false;
  CHECK_FALSE(picked(&says, SumOrder::ranks));
}

TEST_CASE("ranks that ask for different orders make no communicator") {
  const auto body = [](Communicator& communicator) {
    Diagnostics diagnostics;
    const SumOrder order = communicator.rank() == 1 ? SumOrder::tree : SumOrder::replicated;
    const auto made = collectives_of(communicator, diagnostics, {.order = order});
    return made == nullptr ? testing::text(diagnostics) : "made";
  };
  for (const std::string& said : testing::threads(3, body)) {
    CHECK(said ==
          "error: sums of rank 0 keep to 'replicated', and those of rank 1 to 'tree'\n"
          "note: MSCCLC_ORDER, or the communicator's own option, must be the same on all ranks\n");
  }
}

}  // namespace
}  // namespace mscclc
