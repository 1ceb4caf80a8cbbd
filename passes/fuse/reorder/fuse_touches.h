// What each op of a rank touches, as numbered cells: a chunk of memory (of this rank or of one at a
// far end; input and output chunks that may coincide are one cell), a side of a channel end, a side
// of a semaphore. Ops can change places only where their cells allow it.
#pragma once

#include <span>
#include <vector>

#include "ir/program/access.h"
#include "passes/fuse/reorder/fuse_places.h"

namespace mscclc::fusion {

/// A run of chunks. Operands that mean the same memory, under whatever name, give the same.
struct Stretch {
  uint32_t space = 0, first = 0, count = 0;
  bool operator==(const Stretch&) const = default;
};

/// One operand of an op.
struct Use {
  Stretch at;
  bool write = false;
  bool packets = false;  ///< through the packet protocol
  bool empties = false;  ///< a write: puts the sentinel back into a slot that the op reads
  bool memory = true;    ///< false: a channel end or a semaphore
};

/// One chunk of a use.
struct Touch {
  uint32_t cell, use;
};

class Touches {
 public:
  explicit Touches(const Program& program);
  /// Reads a run of ops of a rank, [first, last]. False if they refer to more chunks than can be
  /// looked at one by one.
  bool start(uint32_t rank, Number first, Number last);
  std::span<const Touch> of(Number op) const {
    const uint32_t* begin = &begin_[op - first_];
    return {touches_.data() + begin[0], begin[1] - begin[0]};
  }
  const Use& use(uint32_t i) const { return uses_[i]; }
  uint32_t cells() const { return cells_; }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t cell = kNone;
  };
  /// How far chunks of a rank's input and output lie inside the space they share in place.
  struct Shift {
    bool shared = false;
    uint32_t input = 0, output = 0;
  };

  void add_uses(uint32_t rank, const Op& op);
  bool empties(const OpInfo& row, const Access& access) const;
  /// One side of a channel end or a semaphore.
  Use of_end(uint32_t side, uint32_t index) const;
  void add_control(uint32_t rank, const Op& op, const OpInfo& row);
  void add_touches(uint32_t use);
  Stretch stretch(const Access& access) const;
  uint32_t cell(uint64_t key);

  const Program& program_;
  std::vector<Shift> shifts_;   ///< by rank
  uint32_t buffers_ = 0;        ///< most buffers of a rank
  uint32_t channel_space_ = 0;  ///< the first space that is not memory
  Number first_ = 1;
  uint32_t cells_ = 0;
  std::vector<Access> accesses_;
  std::vector<Use> uses_;
  std::vector<Touch> touches_;
  std::vector<uint32_t> begin_;  ///< by op: first of its uses, then of its touches
  std::vector<Slot> slots_;
  uint32_t shift_ = 0;
};

}  // namespace mscclc::fusion
