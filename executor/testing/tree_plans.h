// Every op that can add up as a tree, or exactly, with as many sources as one likes: for tests of
// all machines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc::testing {

struct TreePlan {
  TestProgram plan;
  /// By rank: the input chunks that its op adds up, in written order, into its output chunk 0, and
  /// if `sends` into chunk 1 of the other rank.
  std::vector<std::vector<CallerChunk>> sources;
  bool sends;
};

/// The ops, by kind: all that add up, but those of switches.
std::span<const OpKind> tree_ops();
/// Two ranks with one such op each. `format`: of its packets, if it has any. REQUIRES: 2 sources or
/// more.
TreePlan tree_plan(OpKind kind, PacketFormat format, uint32_t sources,
                   Summation summation = Summation::tree);
/// The formats to make the plan of an op for.
std::vector<PacketFormat> formats_of_tree(OpKind kind);

}  // namespace mscclc::testing
