// Where ops go: the thread block, the group of blocks, the pipeline at hand; and which blocks turn
// out to have no ops.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/builder/draft/budget.h"
#include "compiler/builder/draft/draft.h"

namespace mscclc {

/// In the number of a place's owner: it is that of a group, not of a block.
inline constexpr uint32_t kGroupOwner = 0x80000000u;

/// A thread block without ops.
struct EmptyBlock {
  uint32_t rank, block;
  Mark mark;  ///< of the `tb` that declares it, if one does
};

class Places {
 public:
  Places(BuildReports& reports, Draft& draft, Budget& budget)
      : reports_(reports), draft_(draft), budget_(budget) {}

  /// The rank at hand is left: notes which of its blocks have no ops so far.
  void leave_rank();
  /// Another rank is at hand, and nothing in it.
  void enter_rank();

  // ---- where the ops that follow stand; false after a mistake, which is reported ----
  bool enter_block(int64_t block, Mark mark);
  bool enter_group(const List& blocks, Mark mark);
  void no_place() { block_ = group_ = kNone; }
  bool enter_pipeline(int64_t unit, int64_t chunks, Mark unit_mark, Mark chunks_mark);
  /// Goes on with a pipeline of this rank that was left; it is an error if it was begun with
  /// another unit or number of chunks.
  bool resume_pipeline(uint32_t loop, int64_t unit, int64_t chunks, Mark mark);
  void leave_pipeline() {
    loop_ = kNone;
    rounds_ = 0;
  }
  /// Makes room for a block of the rank at hand; false once there are too many in all.
  bool need_block(uint32_t block);
  /// The block has an op.
  void use_block(uint32_t block) { block_uses_[block].has_ops = true; }

  uint32_t block() const { return block_; }
  uint32_t group() const { return group_; }
  bool placed() const { return block_ != kNone || group_ != kNone; }
  uint32_t loop() const { return loop_; }
  /// Of the pipeline at hand.
  uint32_t loop_chunks() const { return loop_chunks_; }
  /// The block or group at hand as one number; kNone: neither.
  uint32_t owner() const {
    return block_ != kNone ? block_ : group_ != kNone ? kGroupOwner | group_ : kNone;
  }
  std::string owner_text(uint32_t owner) const;

  // ---- classes of pipelines that have the same number of rounds; 0: outside pipelines ----
  uint32_t rounds() const { return rounds_; }
  uint32_t rounds_of(const Loop& loop) const;
  /// "in each round of a pipeline with unit: 1024", or "outside pipelines".
  std::string rounds_text(uint32_t rounds) const;

  /// Blocks that had no ops when their rank was left. A rank may have been visited again.
  const std::vector<EmptyBlock>& empty_blocks() const { return empty_blocks_; }

  // ---- another builder's, in which other ranks were done ----
  /// By its groups: ours.
  std::vector<uint32_t> take_groups(const Places& part);
  /// By its classes of pipelines: ours.
  std::vector<uint32_t> take_round_classes(const Places& part);
  void take_empty_blocks(const Places& part);

 private:
  /// A mistake is reported once, so more of them show nothing new.
  static constexpr size_t kMaxEmptyBlocks = 4096;
  struct BlockUse {
    bool has_ops = false;
    Mark mark;  ///< of the `tb` that declares it, if one does
  };

  BuildReports& reports_;
  Draft& draft_;
  Budget& budget_;
  uint32_t block_ = kNone, group_ = kNone, loop_ = kNone, rounds_ = 0, loop_chunks_ = 0;
  std::map<std::vector<int64_t>, uint32_t> groups_;  ///< by their blocks
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> round_classes_;
  std::vector<BlockUse> block_uses_;      ///< by block of the rank at hand
  std::vector<EmptyBlock> empty_blocks_;  ///< seen on leaving a rank
};

}  // namespace mscclc
