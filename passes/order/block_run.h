// Runs the ops of one rank in an order that can happen: always the op written first among those
// whose block has come so far and whose semaphores and barriers let it proceed. Conflicting ops are
// visited in written order unless the author's own synchronisation says otherwise.
//
// Meanwhile it keeps the blocks' clocks: the k-th acquire of a semaphore pairs with its k-th
// release (after the initial value) where one block releases and one acquires. Where several
// release what one acquires, outside pipelines, a release is over once so many have been taken that
// the count cannot have been reached without it. Other semaphores order nothing. The body of a
// pipeline is run as one round.
#pragma once

#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/program/signal_counts.h"
#include "passes/order/block_clocks.h"
#include "passes/order/block_sequence.h"

namespace mscclc::order {

/// Reports that written order wants op `first` before `second`, which cannot be had.
void report_contradiction(const Program& program, uint32_t rank, uint32_t first, uint32_t second,
                          Diagnostics& diagnostics);

class BlockRun {
 public:
  /// Where a block stands.
  struct Block {
    uint32_t next = 0;        ///< position of its next op in the sequence
    uint32_t loop = kNone;    ///< the pipeline it is in
    uint32_t entry = 0;       ///< position of the pipeline's first op
    uint32_t entry_row = 0;   ///< what it knew before that op
    uint32_t operand = 0;     ///< of an acquire in progress
    uint32_t waiter = kNone;  ///< next block that waits for the same semaphore
    bool stalled = false;
    /// Waits until this block has done so many ops (a visitor asked for it), because of that op.
    uint32_t after = kNone, after_count = 0, because = kNone;
  };

  void start(const Program& program, uint32_t rank);
  /// Visits each data op once: `visit(op)` gives true, or false after stall().
  /// Returns false if blocks are left that wait forever.
  template <class Visit>
  bool run(Visit&& visit);
  /// Reports the first op that waits forever.
  void report_stuck(Diagnostics& diagnostics) const;

  /// The op at hand waits until `block` has done `count` ops; `because` conflicts with it.
  void stall(uint32_t op, uint32_t block, uint32_t count, uint32_t because);

  BlockClocks clocks;
  Block& block(uint32_t b) { return blocks_[b]; }
  /// 1 for the first op of a block.
  uint32_t count(uint32_t op) const { return order_.position[op] - order_.begin[block_of(op)] + 1; }
  /// The block of this op, its next, has come to the op's pipeline (if it has not before).
  void enter(uint32_t op);
  /// How many ops a block has done.
  uint32_t done(uint32_t b) const { return blocks_[b].next - order_.begin[b]; }
  /// The block's next op, or kNone.
  uint32_t next_op(uint32_t b) const {
    return blocks_[b].next < order_.begin[b + 1] ? order_.ops[blocks_[b].next] : kNone;
  }
  /// First and last op of the pipeline run of this op's block; the op itself outside pipelines.
  uint32_t loop_first(uint32_t op) const;
  uint32_t loop_last(uint32_t op) const;
  const BlockSequence& sequence() const { return order_; }

 private:
  /// One of several blocks that release a semaphore.
  struct Releaser {
    uint32_t block;
    uint32_t releases = 0;             ///< in a call
    std::vector<Knowledge> published;  ///< with each so far
  };
  struct Semaphore {
    Sole releaser, acquirer;  ///< blocks
    uint32_t value = 0, taken = 0, initial = 0;
    uint32_t waiter = kNone;  ///< a block that waits
    /// Releases by the single releaser that no block has acquired yet, in `released_`.
    uint32_t oldest = kNone, newest = kNone;
    /// Several that one block takes from, all outside pipelines; else empty.
    std::vector<Releaser> releasers;
    uint32_t releases = 0;   ///< of all blocks, in a call
    bool in_rounds = false;  ///< an op of a pipeline counts
    Releaser& releaser_of(uint32_t block);
  };
  struct Released {
    Knowledge knowledge;
    uint32_t next;
  };
  struct Barrier {
    std::vector<uint32_t> blocks;  ///< sorted
    uint32_t operands;             ///< of the op that was seen first
    std::vector<uint32_t> arrived;
    uint32_t row = 0;
  };

  uint32_t block_of(uint32_t op) const { return rank_->ops[op].block; }
  void read_semaphores();
  bool do_control(uint32_t op);
  bool acquire(uint32_t op);
  void release(uint32_t op);
  void learn_certain(uint32_t op, const Semaphore& s);
  bool arrive(uint32_t op);
  Barrier& barrier_of(const Op& op);
  void finish(uint32_t b);
  void wake(uint32_t b);

  const Program* program_ = nullptr;
  const Rank* rank_ = nullptr;
  uint32_t rank_id_ = 0;
  std::vector<Block> blocks_;
  BlockSequence order_;
  std::vector<Semaphore> semaphores_;
  std::vector<Released> released_;
  std::vector<Barrier> barriers_;
  std::vector<uint32_t> ready_;    ///< woken blocks with ops before the cursor
  std::vector<uint32_t> waiting_;  ///< blocks that wait for the progress of another
};

template <class Visit>
bool BlockRun::run(Visit&& visit) {
  const uint32_t ops = static_cast<uint32_t>(rank_->ops.size());
  const auto step = [&](uint32_t op) {
    enter(op);
    const bool data = info(rank_->ops[op].kind).moves_data();
    if (!(data ? visit(op) : do_control(op))) return;
    if (next_op(block_of(op)) == op) finish(block_of(op));  // a barrier has finished it already
  };
  for (uint32_t op = 0; op < ops; ++op) {
    const uint32_t b = block_of(op);
    if (!blocks_[b].stalled && next_op(b) == op) step(op);
    while (!ready_.empty()) {
      size_t lowest = 0;
      for (size_t k = 1; k < ready_.size(); ++k) {
        if (next_op(ready_[k]) < next_op(ready_[lowest])) lowest = k;
      }
      const uint32_t woken = ready_[lowest], next = next_op(woken);
      if (blocks_[woken].stalled || next == kNone || next > op) {
        ready_[lowest] = ready_.back();
        ready_.pop_back();
      } else {
        step(next);
      }
    }
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (next_op(b) != kNone) return false;
  }
  return true;
}

}  // namespace mscclc::order
