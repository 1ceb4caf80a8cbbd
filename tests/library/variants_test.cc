// The library with other numbers of instances, either policy, and without its thread blocks: the
// results stay the same. What a program costs without thread blocks is compared with what its
// author made of it.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/library/library.h"

namespace mscclc {
namespace {

/// Taking blocks away leaves names unused, of which the compiler warns.
bool compiled_variant(const CompiledWorld& world) {
  return world.errors().find("error:") == std::string::npos;
}

/// A few calls of a world: small and odd sizes, more than a unit, both ways of calling in turn.
void check_variant(CompiledWorld& world, uint64_t seed) {
  INFO(world.errors());
  REQUIRE(compiled_variant(world));
  static const RunSize kSizes[] = {{1, 0}, {257, 0}, {0, 65544}, {0, 3 << 20}};
  const Dtype dtype = world.dtypes()[0];
  const std::vector<ReduceOp> ops = world.reductions();
  for (const RunSize& size : kSizes) {
    const std::vector<bool> in_place = world.in_place();
    ++seed;
    REQUIRE(world.run({.bytes = world.bytes(size, dtype),
                       .dtype = dtype,
                       .op = ops[seed % ops.size()],
                       .in_place = in_place[seed % in_place.size()],
                       .iterations = size.bytes > (1 << 20) ? 2 : kCalls,
                       .schedule_seed = seed}) == "");
  }
}

/// The second smallest world of a program: the smallest has one peer only.
const Defines& some_world(const LibraryProgram& entry) {
  return entry.worlds[std::min<size_t>(1, entry.worlds.size() - 1)];
}

/// Thread blocks of rank 0 and most ops of one of them.
std::pair<uint32_t, uint32_t> cost(const Program& program) {
  const std::vector<uint32_t> begin = block_offsets(program.ranks[0]);
  uint32_t blocks = 0, most = 0;
  for (size_t b = 0; b + 1 < begin.size(); ++b) {
    blocks += begin[b + 1] > begin[b] ? 1 : 0;
    most = std::max(most, begin[b + 1] - begin[b]);
  }
  return {blocks, most};
}

}  // namespace

TEST_CASE("library programs give the same for every number of instances") {
  uint64_t seed = 0;
  for (const LibraryProgram& entry : library()) {
    for (const char* instances : {"2", "3"}) {
      for (const bool blocked : {false, true}) {
        DYNAMIC_SECTION(entry.name << " I=" << instances << (blocked ? " blocked" : "")) {
          Defines defines = some_world(entry);
          defines.emplace_back("I", instances);
          CompiledWorld world(entry.name, defines, {.blocked = blocked});
          check_variant(world, ++seed);
        }
      }
    }
  }
}

TEST_CASE("library programs give the same without thread blocks") {
  for (const LibraryProgram& entry : library()) {
    for (const uint32_t most : {0u, 1u, 3u}) {
      DYNAMIC_SECTION(entry.name << " in " << most << " blocks") {
        Defines defines = some_world(entry);
        defines.emplace_back("I", "1");
        CompiledWorld world(entry.name, defines,
                            {.without_blocks = true, .max_thread_blocks = most});
        check_variant(world, 11 + most);
        if (most > 0) REQUIRE(cost(world.program()).first <= most);
      }
    }
  }
}

// Programs whose blocks the compiler finds by itself: no more ops in a block than by hand. Not
// alltoall_ring, in which a peer's signals and waits are put into two blocks by hand, nor what
// fills units of other ranks (alltoall_pipeline, programs for several nodes), or writes outputs on
// the word of packets (allreduce_hybrid), or sends packets to a rank that sends none back
// (broadcast_packets): that stays in one block.
TEST_CASE("without thread blocks programs cost what they cost by hand") {
  for (const char* name : {"allgather_copy_engine",
                           "allgather_direct",
                           "allgather_packets",
                           "allgather_ring",
                           "allgather_switch",
                           "allgather_switch_packets",
                           "allreduce_1shot",
                           "allreduce_1shot_ordered",
                           "allreduce_2shot",
                           "allreduce_2shot_packets",
                           "allreduce_allpairs",
                           "allreduce_halving_doubling",
                           "allreduce_ring",
                           "allreduce_switch_direct",
                           "alltoall_copy_engine",
                           "alltoall_direct",
                           "alltoall_packets",
                           "alltoall_scratch",
                           "alltoallv",
                           "broadcast_direct",
                           "broadcast_tree",
                           "gather_direct",
                           "reduce_direct",
                           "reducescatter_direct",
                           "reducescatter_packets",
                           "scatter_direct",
                           "sendrecv",
                           "sendrecv_get",
                           "sendrecv_port"}) {
    const Defines defines = {{"R", "8"}, {"I", "1"}};
    const CompiledWorld by_hand(name, defines), found(name, defines, {.without_blocks = true});
    INFO(name);
    REQUIRE((compiled_variant(by_hand) && compiled_variant(found)));
    const auto [hand_blocks, hand_ops] = cost(by_hand.program());
    const auto [blocks, ops] = cost(found.program());
    INFO(fmt::format("by hand {} blocks, {} ops; found {} blocks, {} ops", hand_blocks, hand_ops,
                     blocks, ops));
    CHECK(ops <= hand_ops);
    CHECK(blocks <= 3 * hand_blocks);  // an op each, of blocks that do three by hand
  }
}

}  // namespace mscclc
