// Plans of the library whose sums are changed: two addends change places, a sum is rounded on the
// way, or an op, the last of a rank's among them, adds up in another way. The proof of none claims
// its contract any longer, and what it still claims shows in the bits.

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "ir/verify/verify.h"
#include "passes/prove/prove.h"
#include "plans/format/library_call.h"
#include "tests/library/library.h"
#include "tests/library/shipped.h"
#include "tests/orders/ordered_rows.h"
#include "tests/orders/ordered_sums.h"

namespace mscclc {
namespace {

enum class Change : uint8_t { first_two, second_and_third, first_and_last, rounded, other_way };
constexpr Change kChanges[] = {Change::first_two, Change::second_and_third, Change::first_and_last,
                               Change::rounded, Change::other_way};

/// Sums of as many are the same in every order, and along the tree.
constexpr size_t kLeast = 3;

struct PlaceOfOp {
  uint32_t rank;
  size_t op;
};

/// The first and the last sum of each rank that adds up enough, without the help of a switch.
std::vector<PlaceOfOp> sums_of(const Program& program) {
  std::vector<PlaceOfOp> found;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    std::vector<size_t> sums;
    for (size_t i = 0; i < rank.ops.size(); ++i) {
      const Op& op = rank.ops[i];
      const auto of_switch = [&](const Operand& o) {
        return o.channel != kNone && rank.channels[o.channel].peer == kNone;
      };
      if (info(op.kind).has(kReduces) && op.srcs >= kLeast &&
          std::ranges::none_of(program.srcs(op), of_switch)) {
        sums.push_back(i);
      }
    }
    if (!sums.empty()) found.push_back({r, sums.front()});
    if (sums.size() > 1) found.push_back({r, sums.back()});
  }
  return found;
}

/// The sum of the first two is stored where the whole is to be, and taken from there. False: that
/// is no place to take it from.
bool round_on_the_way(Program& program, const PlaceOfOp& at) {
  std::vector<Op>& ops = program.ranks[at.rank].ops;
  Op first = ops[at.op], rest = first;
  const auto to = program.dsts(first), from = program.srcs(first);
  const std::vector<Operand> dsts(to.begin(), to.end()), srcs(from.begin(), from.end());
  const Operand& place = dsts[0];
  if (place.channel != kNone || program.buffer_of(at.rank, place).packets != PacketFormat::none) {
    return false;
  }
  std::vector<Operand> others = {place};
  others.insert(others.end(), srcs.begin() + 2, srcs.end());
  first.complete = rest.complete = false;
  program.set_operands(first, std::span(&place, 1), std::span(srcs).first(2));
  program.set_operands(rest, dsts, others);
  Op sync;
  sync.block = first.block;
  sync.loop = first.loop;
  const auto where = ops.begin() + static_cast<ptrdiff_t>(at.op);
  *where = rest;
  ops.insert(where, {first, sync});
  return true;
}

/// False: the plan cannot be changed so there.
bool change(Program& program, const PlaceOfOp& at, Change what) {
  if (what == Change::rounded) return round_on_the_way(program, at);
  Op& op = program.ranks[at.rank].ops[at.op];
  const auto to = program.dsts(op), from = program.srcs(op);
  const std::vector<Operand> dsts(to.begin(), to.end());
  std::vector<Operand> srcs(from.begin(), from.end());
  if (what == Change::other_way) {
    if (op.summation == Summation::in_turn && op.srcs <= kMaxTreeInLine) return false;
    op.summation = op.summation == Summation::in_turn ? Summation::tree : Summation::in_turn;
    return op.summation == Summation::tree || op.srcs > kMaxTreeInLine;
  }
  const size_t a = what == Change::second_and_third ? 1 : 0;
  std::swap(srcs[a], srcs[what == Change::first_and_last ? srcs.size() - 1 : a + 1]);
  program.set_operands(op, dsts, srcs);
  return true;
}

/// Does the change leave the bits of a contract?
bool is_harmless(Change what, SumOrder order) {
  const bool swaps = what != Change::rounded && what != Change::other_way;
  return what == Change::first_two || (order == SumOrder::exact && swaps);
}

LibraryCall call_of(const Program& program, Dtype dtype, SumOrder order) {
  return {.kind = program.contract.kind,
          .ranks = static_cast<uint32_t>(program.ranks.size()),
          .dtype = dtype,
          .order = order};
}

/// What is claimed of it is so.
void check_bits(const Program& program, const Proof& proof) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    for (const ProvedOrder& row : kProvedOrders) {
      if (!keeps_order(proof, call_of(program, dtype, row.order))) continue;
      INFO(info(dtype).name << " " << name(row.order));
      CHECK(testing::breaks(program, {.elements = 3001, .dtype = dtype}, row.order) == "");
    }
  }
}

/// Tries all changes of a plan that keeps `order`.
void try_mutants(const Program& program, SumOrder order, std::map<Change, uint32_t>& refused) {
  for (const PlaceOfOp& at : sums_of(program)) {
    for (const Change what : kChanges) {
      Program mutant = program;
      Diagnostics diagnostics;
      if (!change(mutant, at, what) || !verify_structure(mutant, diagnostics)) continue;
      INFO("rank " << at.rank << ", op " << at.op << ", change " << static_cast<int>(what));
      const Proof proof = prove(mutant, diagnostics);
      // Rounded in two types that both are bf16: in f32 the order is the same.
      const bool kept = proof.proved && keeps_order(proof, call_of(mutant, Dtype::bf16, order));
      CHECK(kept == (is_harmless(what, order) && proof.proved));
      if (proof.proved) check_bits(mutant, proof);
      refused[what] += !kept;
    }
  }
}

TEST_CASE("sums of the library that are changed lose their contract") {
  std::map<SumOrder, std::map<Change, uint32_t>> refused;
  for (const testing::OrderedWorld world : {testing::OrderedWorld{4}, {3}, {4, 4}}) {
    std::vector<testing::OrderedRow> tried;
    for (testing::OrderedRow& row : testing::ordered_rows(shipped().table, world)) {
      for (auto& [key, value] : row.defines) {
        if (key == "B") value = "1";  // blocks do the same, each for its part
      }
      if (std::ranges::find(tried, row) != tried.end()) continue;
      tried.push_back(row);
      const CompiledWorld compiled(row.program, row.defines);
      REQUIRE(compiled.errors() == "");
      for (const SumOrder order : row.orders) {
        if (order == SumOrder::replicated) continue;
        INFO(row.text() << ", " << name(order));
        try_mutants(compiled.program(), order, refused[order]);
      }
    }
  }
  for (const SumOrder order : {SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
    INFO(name(order));
    CHECK(refused[order][Change::rounded] > 10);
    CHECK(refused[order][Change::other_way] > 10);
    CHECK(refused[order][Change::first_two] == 0);
    CHECK((order == SumOrder::exact) == (refused[order][Change::second_and_third] == 0));
  }
}

}  // namespace
}  // namespace mscclc
