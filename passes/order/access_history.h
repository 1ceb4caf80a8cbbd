// What the ops of one rank have touched so far, chunk by chunk, as far as a later op may still
// conflict with it: the writes that stand, and the reads since. Chunks of the rank itself lie in a
// table, those of other ranks (and of buffers far larger than the program) in a hash table; both
// are reused from rank to rank.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::order {

/// One op's access to a chunk, as part of a reference to `count` chunks from `first` on.
struct Touch {
  uint32_t op, first, count;
  uint32_t next;  ///< older touch of the same chunk and kind, or kNone
};

/// Heads of the lists of touches of one chunk.
struct Cell {
  uint32_t writes = kNone, reads = kNone;
};

class AccessHistory {
 public:
  /// Forgets everything and begins with this rank.
  void start(const Rank& rank, uint32_t id);
  /// The cell of a chunk, made if it is not there yet.
  uint32_t cell(uint32_t owner, uint32_t buffer, uint32_t chunk) {
    return is_near(owner, buffer) ? base_[buffer] + chunk : far_cell(key(owner, buffer, chunk));
  }
  /// The cell of a chunk, or kNone if nothing has touched it.
  uint32_t find(uint32_t owner, uint32_t buffer, uint32_t chunk) const {
    return is_near(owner, buffer) ? base_[buffer] + chunk : find_far(key(owner, buffer, chunk));
  }
  Cell& operator[](uint32_t cell) { return cells_[cell]; }
  Touch& touch(uint32_t i) { return touches_[i]; }
  /// Puts a touch in front of a list.
  void push(uint32_t& head, uint32_t op, uint32_t first, uint32_t count) {
    touches_.push_back({op, first, count, head});
    head = static_cast<uint32_t>(touches_.size() - 1);
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t rank = kNone;  ///< the rank at hand when the slot was filled; else it is free
    uint32_t cell = 0;
  };
  // Chunks take 31 bits, ranks 16, buffers what is left.
  static uint64_t key(uint64_t owner, uint64_t buffer, uint64_t chunk) {
    return owner << 47 ^ buffer << 31 ^ chunk;
  }
  bool is_near(uint32_t owner, uint32_t buffer) const {
    return owner == rank_ && base_[buffer] != kNone;
  }
  size_t slot_of(uint64_t key) const { return key * 0x9e3779b97f4a7c15u >> shift_; }
  uint32_t far_cell(uint64_t key);
  uint32_t find_far(uint64_t key) const;
  void grow();

  uint32_t rank_ = 0;
  std::vector<uint32_t> base_;  ///< first cell of each of the rank's buffers; kNone: hashed
  std::vector<Cell> cells_;
  std::vector<Touch> touches_;
  std::vector<Slot> slots_{64};
  uint32_t shift_ = 58;  ///< 64 - log2 of the number of slots
  size_t used_ = 0;
};

}  // namespace mscclc::order
