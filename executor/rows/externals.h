// Where the values of externals lie at a rank in a call, and an `apply` of rows on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program/applied.h"

namespace mscclc::rows {

/// An external's rows from `first_row` of the rank's output on, one after the other. What has no
/// rows is one, which all rows share.
struct ExternalLayout {
  uint64_t first_row = 0, rows = 1;
  uint64_t row_bytes = 0;
  bool shared = false;  ///< it has no rows
  uint64_t bytes() const { return rows * row_bytes; }
  /// Where what belongs to a row of the output begins.
  uint64_t offset(uint64_t row) const { return shared ? 0 : (row - first_row) * row_bytes; }
};

/// By external. REQUIRES: the program has a contract of rows, and can_be_t(t).
std::vector<ExternalLayout> lay_out_externals(const Program& program, uint32_t rank,
                                              const Chunking& chunking, Dtype t);

/// Memory that an `apply` reads and writes at a rank.
struct RowMemory {
  std::span<uint8_t*const> dsts, srcs;  ///< of the op's operands: the first row
  std::span<uint8_t* const> externals;  ///< by external: its first byte
  std::span<const ExternalLayout> layouts;
};

/// Computes row `i` of those that begin at `memory`, which is row `row` of the rank's output. All
/// arguments are read before a result is stored.
void apply_row(const Program& program, const Applied& what, Dtype t, const RowMemory& memory,
               uint64_t i, uint64_t row);

}  // namespace mscclc::rows
