// How the builder finds the chunk that an operand names: index values to positions of a buffer's
// dimension. This runs for every operand of every op, so it is small and inline.
#pragma once

#include <vector>

#include "compiler/builder/draft/operands.h"

namespace mscclc {

/// One dimension of a buffer.
struct Axis {
  int64_t low = 0;     ///< the smallest index value
  uint32_t limit = 0;  ///< values from low on that a look-up covers; 0: search (or nothing there)
  uint32_t hole = kNone;            ///< no table: low + hole is left out
  const uint32_t* table = nullptr;  ///< position of low + i, or kNone
  uint32_t stride = 0;              ///< chunks below one index
  bool is_list = false;             ///< written as a list
  List list;

  int64_t length() const { return list.count; }
  /// low, low + 1, … without a gap.
  bool consecutive() const { return limit != 0 && table == nullptr && hole == kNone; }
  /// Position of index `v`, or kNone.
  uint32_t find(int64_t v) const {
    const uint64_t d = static_cast<uint64_t>(v) - static_cast<uint64_t>(low);
    if (d >= limit) return limit == 0 ? search(v) : kNone;
    if (table != nullptr) return table[d];
    if (d >= hole) return d == hole ? kNone : static_cast<uint32_t>(d) - 1;
    return static_cast<uint32_t>(d);
  }
  uint32_t search(int64_t v) const;
};

/// How a buffer's chunks are indexed.
struct Layout {
  uint32_t axes = 0, dims = 0;  ///< a run of those of Layouts
  uint32_t chunks = 0;
  uint32_t traits = 0;               ///< format and caller bits of Traits
  bool unusual = false;              ///< ragged, or without chunks: not for the fast way
  bool ragged = false;               ///< indexed as [row, chunk of the row]
  uint32_t tree = kNone;             ///< a RowNode of Layouts, if dimensions depend on others
  uint32_t rows = 0, row_count = 0;  ///< alltoallv: row_count + 1 offsets
  Mark dims_mark;
};

/// A dimension of a ragged buffer below one choice of the indices before it.
struct RowNode {
  Axis axis;
  std::vector<uint32_t> offset;  ///< by position: its first chunk; and one for the end
  std::vector<uint32_t> below;   ///< by position: a RowNode; none in the last dimension
};

}  // namespace mscclc
