// The table of the library: every call of a collective that it has gets a program, which compiles,
// is proved, fits the GPU that the table is for, takes such calls, and gives what they must give.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "passes/prove/prove.h"
#include "plans/format/library_table.h"
#include "plans/format/target.h"
#include "tests/library/library.h"
#include "tests/library/shipped.h"

namespace mscclc {
namespace {

/// One byte, and every power of two to 4 GiB with its neighbours.
std::vector<uint64_t> all_sizes() {
  std::vector<uint64_t> sizes = {0, 1};
  for (uint64_t bytes = 2; bytes <= uint64_t{4} << 30; bytes *= 2) {
    for (const uint64_t near : {bytes - 1, bytes, bytes + 1}) sizes.push_back(near);
  }
  return sizes;
}

template <class F>
void each_call(const F& check) {
  for (const CollectiveKind kind : shipped().table.collectives()) {
    for (const uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 16u, 72u}) {
      for (const uint64_t bytes : all_sizes()) {
        for (const DtypeInfo& t : dtype_table()) {
          for (const bool in_place : {false, true}) {
            for (const LinkKind links : {LinkKind::nvlink, LinkKind::pcie}) {
              check(LibraryCall{.kind = kind,
                                .ranks = ranks,
                                .bytes = bytes,
                                .dtype = t.dtype,
                                .in_place = in_place,
                                .links = links});
            }
          }
        }
      }
    }
  }
}

std::string call_text(const LibraryCall& call) {
  return fmt::format("{}, {} ranks, {} bytes, {}{}", name(call.kind), call.ranks, call.bytes,
                     info(call.dtype).name, call.in_place ? ", in place" : "") +
         (call.links == LinkKind::pcie ? ", over PCIe" : "");
}

Defines defines_of(CollectiveKind kind, const LibraryChoice& choice, uint32_t ranks) {
  Defines defines(choice.params.begin(), choice.params.end());
  defines.emplace_back("R", std::to_string(ranks));
  if (has_root(kind)) defines.emplace_back("root", std::to_string(ranks - 1));
  return defines;
}

/// The program of a range is right, and is one for the calls of the range.
void check_range(CollectiveKind kind, uint32_t ranks, const LibraryRange& range) {
  const Defines defines = defines_of(kind, *range.choice, ranks);
  INFO(range.choice->program << " " << text(defines));
  const CompiledWorld world(range.choice->program, defines);
  REQUIRE(world.errors() == "");
  const Program& program = world.program();
  Diagnostics diagnostics;
  CHECK(prove(program, diagnostics).proved);
  CHECK(program.contract.kind == kind);
  const bool placed =
      program.contract.in_place == InPlace::either || program.contract.in_place == range.in_place;
  CHECK(placed);
  for (const Dtype t : range.dtypes) {
    const auto& dtypes = program.select.dtypes;
    const bool taken = dtypes.empty() || std::ranges::find(dtypes, t) != dtypes.end();
    CHECK(taken);
  }
  const auto target = find_target("sm_90", diagnostics);
  REQUIRE(target);
  CHECK(program.launch.threads <= target->max_threads_per_block);
  for (const Rank& rank : program.ranks) CHECK(rank.blocks <= target->max_blocks);
}

/// A few calls of the program on the simulator, in place or not as the range is.
void check_runs(CollectiveKind kind, uint32_t ranks, const LibraryRange& range) {
  const Defines defines = defines_of(kind, *range.choice, ranks);
  INFO(range.choice->program << " " << text(defines));
  CompiledWorld world(range.choice->program, defines);
  REQUIRE(world.errors() == "");
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{20000}}) {
    for (const bool in_place : world.in_place()) {
      if (range.in_place == (in_place ? InPlace::no : InPlace::yes)) continue;
      CHECK(world.run({.bytes = world.bytes({0, bytes}, range.dtypes[0]),
                       .dtype = range.dtypes[0],
                       .in_place = in_place,
                       .iterations = kCalls,
                       .schedule_seed = bytes}) == "");
    }
  }
}

}  // namespace

TEST_CASE("every call has a choice, the one of its range") {
  std::map<std::tuple<CollectiveKind, uint32_t, LinkKind>, std::vector<LibraryRange>> ranges;
  each_call([&](const LibraryCall& call) {
    auto& list = ranges[{call.kind, call.ranks, call.links}];
    if (list.empty()) list = shipped().table.ranges(call);
    const LibraryChoice* choice = shipped().table.choose(call);
    size_t found = 0;
    bool same = false;
    for (const LibraryRange& r : list) {
      if (call.bytes < r.min || call.bytes > r.max) continue;
      if (r.in_place == (call.in_place ? InPlace::no : InPlace::yes)) continue;
      if (std::ranges::find(r.dtypes, call.dtype) == r.dtypes.end()) continue;
      ++found;
      same = choice != nullptr && *choice == *r.choice;
    }
    if (found == 1 && same) return;
    FAIL_CHECK(call_text(call) << ": " << found << " ranges");
  });
}

TEST_CASE("every choice compiles, is proved, and takes the calls that it is for") {
  for (const CollectiveKind kind : shipped().table.collectives()) {
    for (const uint32_t ranks : {1u, 2u, 3u, 4u, 8u, 16u}) {
      if (kind == CollectiveKind::sendrecv && ranks == 1) continue;  // no rank to send to
      DYNAMIC_SECTION(name(kind) << " over " << ranks << " ranks") {
        for (const LibraryRange& range : shipped().table.ranges({kind, ranks})) {
          check_range(kind, ranks, range);
        }
      }
    }
  }
}

TEST_CASE("over PCIe no choice has packets in LL128") {
  for (const CollectiveKind kind : shipped().table.collectives()) {
    for (const uint32_t ranks : {2u, 3u, 4u, 8u}) {
      const auto usual = shipped().table.ranges({kind, ranks});
      for (const LibraryRange& range :
           shipped().table.ranges({.kind = kind, .ranks = ranks, .links = LinkKind::pcie})) {
        const CompiledWorld world(range.choice->program, defines_of(kind, *range.choice, ranks));
        INFO(range.choice->program << " " << range.choice->params_text() << ", " << ranks);
        REQUIRE(world.errors() == "");
        for (const Rank& rank : world.program().ranks) {
          for (const Buffer& buffer : rank.buffers) CHECK(buffer.packets != PacketFormat::LL128);
        }
        const auto same = [&](const LibraryRange& r) { return *r.choice == *range.choice; };
        if (std::ranges::none_of(usual, same)) check_range(kind, ranks, range);
      }
    }
  }
}

TEST_CASE("every choice gives the promised result") {
  for (const CollectiveKind kind : shipped().table.collectives()) {
    for (const LibraryRange& range : shipped().table.ranges({kind, 4})) {
      check_runs(kind, 4, range);
    }
  }
}

TEST_CASE("calls over several nodes have a choice that is proved, and gives the promised result") {
  for (const CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::reducescatter,
        CollectiveKind::alltoall, CollectiveKind::broadcast, CollectiveKind::reduce,
        CollectiveKind::sendrecv}) {
    for (const auto& [ranks, nodes] :
         {std::pair(2u, 2u), {4u, 2u}, {6u, 3u}, {8u, 2u}, {16u, 2u}, {32u, 4u}}) {
      const LibraryCall call{.kind = kind, .ranks = ranks, .nodes = nodes};
      const auto ranges = shipped().table.ranges(call);
      CHECK(ranges.back().max == ~uint64_t{0});
      for (const LibraryRange& range : ranges) {
        INFO(range.choice->program << " over " << ranks << " ranks on " << nodes << " nodes");
        const Defines defines = range.choice->defines(call);
        CompiledWorld world(range.choice->program, defines);
        REQUIRE(world.errors() == "");
        Diagnostics diagnostics;
        CHECK(prove(world.program(), diagnostics).proved);
        for (const Rank& rank : world.program().ranks) CHECK(rank.blocks <= 132);
        if (ranks > 6) continue;
        CHECK(world.run({.bytes = world.bytes({0, 20000}, Dtype::f32), .iterations = kCalls}) ==
              "");
      }
    }
  }
}

TEST_CASE("the choices for many nodes fit a GPU") {
  for (const CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::reducescatter,
        CollectiveKind::alltoall, CollectiveKind::broadcast, CollectiveKind::reduce,
        CollectiveKind::sendrecv}) {
    for (const uint32_t nodes : {32u, 64u}) {
      const LibraryCall call{.kind = kind, .ranks = 8 * nodes, .nodes = nodes};
      for (const LibraryRange& range : shipped().table.ranges(call)) {
        INFO(range.choice->program << " on " << nodes << " nodes of 8");
        const CompiledWorld world(range.choice->program, range.choice->defines(call));
        REQUIRE(world.errors() == "");
        for (const Rank& rank : world.program().ranks) CHECK(rank.blocks <= 132);
      }
    }
  }
}

}  // namespace mscclc
