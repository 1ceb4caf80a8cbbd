// How a rank's GEMM is cut into tiles of rows, in which order they are made, and which flags of a
// plan each waits for, or completes. Tiles depend on the shape, the ranks and the chunks only, so
// that all backends make the same GEMMs.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/program/program.h"
#include "runtime/core/overlap/config.h"

namespace mscclc::overlap {

struct Tile {
  uint64_t row = 0, rows = 0;  ///< of [m, …]
  bool own = false;            ///< of this rank's part
  /// Of the plan's only array of flags: to wait for before it is made, and to raise when it is.
  std::vector<uint32_t> await = {}, raise = {};
};

/// Those of a rank, none empty, in the order in which they are made: the own part first where
/// something is gathered, last where sums are made. `chunks`: of each of the parts of all ranks; 0:
/// one tile of all rows.
std::vector<Tile> make_tiles(OverlapKind kind, uint64_t m, uint32_t ranks, uint32_t rank,
                             uint32_t chunks);

/// Gives each flag of the plan to tiles. REQUIRES: the plan has one array of flags; it is of
/// message_bytes().
void assign_flags(const Program& plan, uint32_t rank, const OverlapConfig& config,
                  std::vector<Tile>& tiles);

}  // namespace mscclc::overlap
