// Every reducing row of the library keeps the contract that it is picked for: proved, and bit for
// bit on the simulator, for every number of ranks, on one node and on several.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <tuple>

#include "passes/prove/prove.h"
#include "plans/format/library_table.h"
#include "tests/library/library.h"
#include "tests/library/shipped.h"
#include "tests/orders/ordered_sums.h"

namespace mscclc {
namespace {

using testing::OrderedCall;

constexpr CollectiveKind kReducing[] = {CollectiveKind::allreduce, CollectiveKind::reducescatter,
                                        CollectiveKind::reduce};
constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3};

/// The types of a range whose sums are rounded, of those that are tried.
std::vector<Dtype> tried_types(const LibraryRange& range) {
  std::vector<Dtype> types;
  for (const Dtype type : kTypes) {
    if (std::ranges::find(range.dtypes, type) != range.dtypes.end()) types.push_back(type);
  }
  return types;
}

void check_range(const LibraryRange& range, const LibraryCall& call) {
  const std::vector<Dtype> types = tried_types(range);
  if (types.empty()) return;
  const Defines defines = range.choice->defines(call);
  INFO(range.choice->program << " " << text(defines));
  const CompiledWorld world(range.choice->program, defines);
  REQUIRE(world.errors() == "");
  Diagnostics diagnostics;
  const Proof proof = prove(world.program(), diagnostics);
  REQUIRE(proof.proved);
  CHECK(proof.orders.keep(call.order));
  // What contracts say of the sums is what a run of them says.
  Proof without = proof;
  without.orders = {};
  CHECK(sums_of(world.program(), without) == sums_of(world.program(), proof));
  for (const Dtype dtype : types) {
    const bool in_place = range.in_place == InPlace::yes;
    const OrderedCall made{.elements = 3001, .dtype = dtype, .in_place = in_place};
    INFO(info(dtype).name);
    CHECK(testing::breaks(world.program(), made, call.order) == "");
    OrderedCall other = made;
    other.schedule_seed = 7;
    CHECK(testing::breaks(world.program(), other, call.order) == "");
  }
}

/// All that calls like this one may get, whatever their size, type and placement: once, where
/// calls over other links get the same.
void check_all(LibraryCall call) {
  std::set<std::tuple<std::string, Defines, InPlace, std::vector<Dtype>>> seen;
  for (const LinkKind links : {LinkKind::nvlink, LinkKind::pcie}) {
    call.links = links;
    for (const LibraryRange& range : shipped().table.ranges(call)) {
      const Defines defines = range.choice->defines(call);
      if (seen.emplace(range.choice->program, defines, range.in_place, tried_types(range)).second) {
        check_range(range, call);
      }
    }
  }
}

}  // namespace

TEST_CASE("every row of one node keeps the contract that it is picked for") {
  for (const CollectiveKind kind : kReducing) {
    for (const uint32_t ranks : {2u, 3u, 4u, 5u, 8u}) {
      for (const SumOrder order :
           {SumOrder::replicated, SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
        INFO(name(kind) << " " << ranks << " " << name(order));
        check_all({.kind = kind, .ranks = ranks, .order = order});
      }
    }
  }
}

std::string sums_at(std::string_view program, const Defines& defines) {
  const CompiledWorld world(program, defines);
  REQUIRE(world.errors() == "");
  Diagnostics diagnostics;
  return sums_of(world.program(), prove(world.program(), diagnostics));
}

TEST_CASE("the same sums have the same text in all plans, whatever their chunks and formats") {
  const std::string left = "x0 + x1 + x2 + x3", ring = sums_at("allreduce_ring", {{"R", "4"}});
  for (const char* format : {"LL8", "LL16", "LL128"}) {
    for (const char* blocks : {"1", "8"}) {
      const Defines defines = {{"R", "4"}, {"F", format}, {"B", blocks}};
      CHECK(sums_at("allreduce_2shot_packets", defines) == left);
    }
  }
  for (const char* blocks : {"1", "2", "8"}) {
    CHECK(sums_at("allreduce_push", {{"R", "4"}, {"B", blocks}}) == left);
    CHECK(sums_at("allreduce_ring", {{"R", "4"}, {"I", blocks}}) == ring);
  }
  CHECK(ring == "[[x(o) + x(o+1)] + x(o+2)] + x(o+3), o: which of 4 shares of the message");
  CHECK(sums_at("reduce_chain_packets", {{"R", "4"}}) == "[[x2 + x3] + x1] + x0");
}

TEST_CASE("rows for 9 to 16 ranks are proved to keep the contract that they are picked for") {
  for (const CollectiveKind kind : kReducing) {
    for (uint32_t ranks = 9; ranks <= 16; ++ranks) {
      for (const SumOrder order : {SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
        const LibraryCall call{.kind = kind, .ranks = ranks, .order = order};
        std::set<Defines> seen;
        for (const LibraryRange& range : shipped().table.ranges(call)) {
          if (tried_types(range).empty()) continue;
          Defines defines = range.choice->defines(call);
          for (auto& [key, value] : defines) {
            if (key == "B") value = "1";  // blocks do the same, each for its part
          }
          defines.emplace_back("program", range.choice->program);
          if (!seen.insert(defines).second) continue;
          defines.pop_back();
          INFO(range.choice->program << " " << text(defines));
          const CompiledWorld world(range.choice->program, defines);
          REQUIRE(world.errors() == "");
          Diagnostics diagnostics;
          const Proof proof = prove(world.program(), diagnostics);
          CHECK(proof.proved);
          CHECK(proof.orders.keep(order));
        }
      }
    }
  }
}

TEST_CASE("every row of several nodes keeps the contract that it is picked for") {
  constexpr std::pair<uint32_t, uint32_t> kSpreads[] = {{2, 2}, {3, 1}, {4, 1}, {3, 2}, {2, 4}};
  for (const CollectiveKind kind : kReducing) {
    for (const auto& [nodes, each] : kSpreads) {
      for (const SumOrder order :
           {SumOrder::replicated, SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
        INFO(name(kind) << " " << nodes << " x " << each << " " << name(order));
        check_all({.kind = kind, .ranks = nodes * each, .nodes = nodes, .order = order});
      }
    }
  }
}

TEST_CASE("every size and type on one node has a row for each order") {
  for (const CollectiveKind kind : kReducing) {
    for (uint32_t ranks = 2; ranks <= 16; ++ranks) {
      for (const DtypeInfo& type : dtype_table()) {
        for (uint64_t bytes = 1; bytes <= uint64_t{4} << 30; bytes *= 2) {
          for (const SumOrder order : {SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
            const LibraryCall call{
                .kind = kind, .ranks = ranks, .bytes = bytes, .dtype = type.dtype, .order = order};
            if (shipped().table.choose(call) == nullptr) FAIL(ranks << " " << type.name << bytes);
          }
        }
      }
    }
  }
}

// A row of a batch has the same bits whichever batch it is in.
TEST_CASE("an element has the same bits in messages of every size") {
  constexpr uint64_t kHidden = 512;
  constexpr uint32_t kRanks = 4;
  LibraryCall call{.kind = CollectiveKind::allreduce,
                   .ranks = kRanks,
                   .dtype = Dtype::bf16,
                   .order = SumOrder::ranks};
  for (const uint64_t rows : {1, 2, 3, 7, 16, 64, 160, 512}) {
    call.bytes = rows * kHidden * info(call.dtype).bytes;
    const LibraryChoice* const choice = shipped().table.choose(call);
    REQUIRE(choice != nullptr);
    INFO(rows << " rows: " << choice->program << " " << choice->params_text());
    const CompiledWorld world(choice->program, choice->defines(call));
    REQUIRE(world.errors() == "");
    const OrderedCall made{.elements = rows * kHidden, .dtype = call.dtype, .first_element = 0};
    CHECK(testing::breaks(world.program(), made, SumOrder::ranks) == "");
  }
}

}  // namespace mscclc
