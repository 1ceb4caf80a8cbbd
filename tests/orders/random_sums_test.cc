// Random sums: what the prover says of their order is what the simulator computes, bit for bit.
#include "tests/orders/random_sums.h"

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "executor/cpu/dice.h"
#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "tests/orders/ordered_sums.h"

namespace mscclc {
namespace {

TEST_CASE("what is proved of the order of a sum is what its bits show") {
  const uint64_t programs = testing::if_sanitized<uint64_t>(60, 400);
  uint32_t replicated = 0, left = 0, tree = 0, exact = 0;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    Dice dice(seed);
    const uint32_t ranks = 3 + static_cast<uint32_t>(dice.below(4));
    const std::string text = testing::random_sums(ranks, dice);
    INFO(text);
    Sources sources;
    Diagnostics diagnostics;
    const auto program = compile(sources, sources.add("sums.mscl", text), {}, {}, diagnostics);
    INFO(render_text(diagnostics, sources));
    REQUIRE(program);
    const Proof proof = prove(*program, diagnostics);
    REQUIRE(proof.proved);
    const auto keeps = [&](SumOrder order, Dtype dtype) {
      return testing::breaks(*program, {.elements = 600, .dtype = dtype}, order).empty();
    };
    const SumOrders& orders = proof.orders;
    const bool once = proof.rounding == Rounding::once;
    CHECK((!orders.replicated || keeps(SumOrder::replicated, Dtype::bf16)));
    CHECK((!orders.replicated || keeps(SumOrder::replicated, Dtype::f32)));
    // Sums of f32 show every order; those of a type that is rounded also where.
    CHECK(keeps(SumOrder::ranks, Dtype::f32) == orders.ranks);
    CHECK(keeps(SumOrder::tree, Dtype::f32) == orders.tree);
    CHECK(keeps(SumOrder::exact, Dtype::f32) == orders.exact);
    CHECK((!orders.exact || keeps(SumOrder::exact, Dtype::bf16)));
    CHECK((!orders.keep(SumOrder::ranks) || !once || keeps(SumOrder::ranks, Dtype::bf16)));
    replicated += orders.replicated ? 1 : 0;
    left += orders.ranks ? 1 : 0;
    tree += orders.tree ? 1 : 0;
    exact += orders.exact ? 1 : 0;
  }
  CHECK(replicated > programs / 3);
  CHECK(left > programs / 20);
  CHECK(tree > programs / 40);
  CHECK(exact > programs / 40);
}

}  // namespace
}  // namespace mscclc
