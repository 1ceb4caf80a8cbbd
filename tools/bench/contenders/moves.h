// What a rank has to move at least in a collective, whatever the algorithm: the floor that times
// are held against.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/contract/contract.h"

namespace mscclc::bench {

/// Bytes of a rank's own input that go into an output buffer; its own, or a peer's.
struct Move {
  uint64_t from = 0;  ///< byte of the input
  uint32_t to_rank = 0;
  uint64_t to = 0;  ///< byte after the begin of that rank's output
  uint64_t bytes = 0;
};

/// The moves of `rank`, those to the next ranks first.
/// `part`: bytes of one rank's part, see Chunking. Outputs must have room for a whole message:
/// sums are not made, so each contribution has a place of its own.
std::vector<Move> least_moves(const Contract& contract, uint32_t rank, uint64_t part);

/// Is there a floor, which is the same for all ranks to say? One of them may have no moves: of two
/// ranks only the root of a broadcast has.
bool has_least_moves(const Contract& contract, uint64_t part);

}  // namespace mscclc::bench
