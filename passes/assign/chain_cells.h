// Which op touches which chunk, over all ranks of a program: one list of touches per cell, in the
// order of ranks and of their ops. A cell is a chunk of a buffer of a rank.
//
// Where the caller's buffers may coincide, a chunk of theirs has a second cell, shared by the input
// chunk and the output chunk that may be the same memory. A copy onto itself does nothing in that
// case, so it touches the first cells only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program/access.h"
#include "ir/program/program.h"

namespace mscclc::assign {

struct CellTouch {
  uint32_t rank, op;  ///< op: index among the rank's ops
  bool write, packets;
};

class ChainCells {
 public:
  /// Collects the touches of all ops; false if there are too many to look at one by one.
  bool collect(const Program& program);

  std::span<const CellTouch> touches(uint32_t cell) const {
    return {touches_.data() + begin_[cell], begin_[cell + 1] - begin_[cell]};
  }
  uint32_t cells() const { return static_cast<uint32_t>(begin_.size() - 1); }
  /// Cells that an op touches; a cell stands there once for each of its touches.
  std::span<const uint32_t> cells_of(uint32_t rank, uint32_t op) const {
    const size_t at = first_op_[rank] + op;
    return {cells_.data() + op_cells_[at], op_cells_[at + 1] - op_cells_[at]};
  }
  /// How the op touches them.
  std::span<const CellTouch> touches_of(uint32_t rank, uint32_t op) const {
    const size_t at = first_op_[rank] + op;
    return {by_op_.data() + op_cells_[at], op_cells_[at + 1] - op_cells_[at]};
  }
  uint32_t owner(uint32_t cell) const { return owners_[cell]; }
  /// True for a chunk of input or output by its own name.
  bool is_callers(uint32_t cell) const { return callers_[cell]; }
  /// Index of a rank's first op, counting the ops of all ranks.
  uint32_t first_op(uint32_t rank) const { return first_op_[rank]; }
  uint32_t ops() const { return first_op_.back(); }

 private:
  void number_cells(const Program& program);
  void find_aliases(const Program& program, uint32_t rank);
  void add_op(const Program& program, uint32_t rank, uint32_t op);
  bool is_copy_onto_itself(const Program& program, uint32_t rank, const Op& op) const;
  void sort();

  /// Where the cells of the caller's buffers of a rank that may coincide begin.
  struct Shared {
    bool any = false;
    uint32_t begin = 0;
    int64_t input_shift = 0, output_shift = 0;
  };
  std::vector<std::vector<uint32_t>> buffers_;  ///< by rank and buffer: its first cell
  std::vector<Shared> shared_;                  ///< by rank
  std::vector<uint32_t> owners_;
  std::vector<bool> callers_;
  std::vector<uint32_t> first_op_;
  std::vector<uint32_t> op_cells_, cells_;  ///< by op: its run in cells_
  std::vector<CellTouch> by_op_, touches_;
  std::vector<uint32_t> begin_;
  std::vector<Access> accesses_;
};

}  // namespace mscclc::assign
