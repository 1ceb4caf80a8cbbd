// Which ranks, and which blocks of a rank, do the same: what a picture folds, and what it calls a
// peer then ("r + 1").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/draw/steps.h"

namespace mscclc::draw {

/// How ranks are turned into one another.
enum class RankTurn : uint8_t {
  none,   ///< not at all: peers are absolute
  ring,   ///< r to r + k
  nodes,  ///< the same in the node and between nodes
  flip    ///< r to r xor k
};

/// Names peers as seen from a rank.
struct PeerNames {
  RankTurn turn = RankTurn::none;
  uint32_t ranks = 1, gpus = 1;  ///< gpus: of a node, for RankTurn::nodes

  /// What stays the same of a peer if all ranks turn.
  uint32_t relative(uint32_t rank, uint32_t peer) const;
  /// "r + 1", "mate + 2", "node + 1", "r xor 4", "rank 3".
  std::string one(uint32_t rank, uint32_t peer) const;
  /// "all others", "its node", "r + 1, r + 2".
  std::string several(uint32_t rank, std::vector<uint32_t> peers) const;
};

/// All ranks, in classes whose ranks do the same.
struct Symmetry {
  PeerNames names;
  std::vector<std::vector<uint32_t>> classes;  ///< by their first rank
};

Symmetry find_symmetry(const Program& program, const Steps& steps);

/// Equal for blocks with the same ops on the same buffers, of whatever chunks. With the same
/// peers, as `names` sees them; null: of whatever peers.
uint64_t shape_of(const Program& program, const Steps& steps, const Block& block,
                  const PeerNames* names);

/// "0–3, 7"; long lists end with "…".
std::string list_text(std::span<const int64_t> sorted, size_t most_runs = 4);

}  // namespace mscclc::draw
