// How the builder finds what an operand names: index values to positions of a buffer's dimension,
// keys to members of a family. This runs for every operand of every op, so it is small and inline.
// Private to builder_*.cc.
#pragma once

#include <vector>

#include "compiler/builder/builder.h"

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
  uint32_t axes = 0, dims = 0;  ///< a run of BuilderState::axes
  uint32_t chunks = 0;
  uint32_t traits = 0;               ///< format and caller bits of Traits
  bool unusual = false;              ///< ragged, or without chunks: not for the fast way
  bool ragged = false;               ///< indexed as [row, chunk of the row]
  uint32_t tree = kNone;             ///< in BuilderState::row_nodes, if dimensions depend on others
  uint32_t rows = 0, row_count = 0;  ///< alltoallv: row_count + 1 offsets in row_offsets
  Mark dims_mark;
};

/// A dimension of a ragged buffer below one choice of the indices before it.
struct RowNode {
  Axis axis;
  std::vector<uint32_t> offset;  ///< by position: its first chunk; and one for the end
  std::vector<uint32_t> below;   ///< by position: a RowNode; none in the last dimension
};

enum class DeclKind : uint32_t { none, buffer, channel, semaphore };

/// What a name means on one rank: its kind and its index among the rank's buffers or families.
struct Decl {
  DeclKind kind = DeclKind::none;
  uint32_t index = 0;
};

/// Channels or semaphores of one name, which keys distinguish.
struct Family {
  uint32_t keys = 0;
  uint32_t table = kNone;   ///< first entry in BuilderState::tables; kNone: look in `sorted`
  uint32_t box = 0;         ///< in BuilderState::boxes: low, extent of each key
  uint32_t single = kNone;  ///< the member, if it has no keys
  uint32_t count = 0;
  NameId name = 0;
  Mark mark;
  std::vector<uint32_t> sorted;  ///< members by keys, of a sparse family
};

}  // namespace mscclc
