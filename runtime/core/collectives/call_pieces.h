// What a call is launched as: pieces of it, each a bound call of its plan, with the copies around
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"

namespace mscclc {

/// A copy that a call does before or after its kernel.
struct CallCopy {
  void* to;
  const void* from;
  uint64_t bytes;
};

/// What is launched at once: a whole call, or a piece of it.
struct ReadyPiece {
  BoundCall bound;  ///< empty: copies only
  std::vector<CallCopy> before, after;
};

/// Elements of a message that are one call: of each row, where it has rows.
struct CallRange {
  uint64_t first = 0, count = 0;
};
/// The calls that a call is made of, each of at most `at_once` elements. REQUIRES: at_once > 0.
std::vector<CallRange> ranges_of(const CollectiveCall& planned, uint64_t at_once);
/// One of them, as Executable::bind() takes it: its elements, with the pointers of the whole call
/// moved on.
CollectiveCall piece_of(const CollectiveCall& planned, const CallRange& range, uint32_t ranks);

/// Memory of the layer's own where rows of alltoallv lie, as long as the longest.
struct OwnRows {
  uint8_t *sent, *received;
};
/// Copies the rows of a piece of alltoallv there before its kernel, and out of there after it.
void add_row_copies(const CollectiveCall& call, const CallRange& range, const OwnRows& rows,
                    uint32_t rank, uint32_t ranks, ReadyPiece& ready);

}  // namespace mscclc
