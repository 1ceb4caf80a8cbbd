// Cuts chunks so finely that every part of every group op is a whole number of slices. Slices are
// ideal fractions: what the parts of an op cut out of chunks that divide evenly.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::symbolic {

class ChunkSlices {
 public:
  explicit ChunkSlices(const Program& program);
  /// Slices of one chunk; 1 if no op has parts.
  uint32_t per_chunk() const { return static_cast<uint32_t>(cuts_.size()) + 1; }

  struct Range {
    uint32_t begin, end;
  };
  /// The slices that `op` handles of a reference to `count` chunks, counted from its first.
  Range range(const Op& op, uint32_t count) const {
    if (op.parts == 0) return {0, count * per_chunk()};
    return {position(op.part, op.parts, count), position(op.part + 1u, op.parts, count)};
  }

 private:
  /// A fraction of a chunk, in lowest terms.
  struct Cut {
    uint64_t numerator, denominator;
    bool operator==(const Cut&) const = default;
    bool operator<(const Cut& o) const {
      return numerator * o.denominator < o.numerator * denominator;
    }
  };
  static Cut cut(uint64_t i, uint32_t parts, uint32_t count);
  uint32_t position(uint32_t i, uint32_t parts, uint32_t count) const;

  std::vector<Cut> cuts_;  ///< between 0 and 1, ascending
};

}  // namespace mscclc::symbolic
