// Where the threads of one block must meet: finds the syncs that are missing, those of the author
// that are needed, and those that order nothing.
//
// A block is walked once, with what has happened since its threads last met. A sync of the author
// is held back until an op needs a meeting; the one held back longest serves if it lies after all
// that the op must follow, else there is a new one. What has not been needed by the next meeting,
// or by the end of the block, goes.
//
// An op needs a meeting in front of it
//  - if it touches bytes that an op since the last one touches, one of them writing, and not each
//    byte by one thread (thread_partition.h),
//  - if it announces (signal, release) data ops since, or waits for what was posted (flush),
//  - if something was waited for since, and it is a data op, signal or release.
// A sync of the author also stays, though none is added, between data ops or a signal and a relaxed
// signal, between one waiting op and the next, and between an op that polls packets and a data op:
// what each thread learns from their arrival, all threads know after the sync, and it may be what
// puts of the block rest on.
#pragma once

#include <vector>

#include "ir/program/program.h"
#include "passes/framework/pass.h"
#include "passes/order/block_sequence.h"

namespace mscclc::order {

/// What an op means for the threads of its block, as bits.
enum Role : uint8_t {
  kData = 1,       ///< moves data
  kPosts = 2,      ///< posts a transfer to a port
  kPublishes = 4,  ///< announces what has been done
  kAnnounces = 8,  ///< announces something, if only that the block is here
  kDrains = 16,    ///< waits for what was posted
  kAwaits = 32,    ///< what follows must come after
  kMeeting = 64,   ///< sync or barrier
  kWritten = 128,  ///< a meeting of this block alone: the author's sync
};

/// The conflicts inside blocks that BlockSyncs looks at.
struct BlockNeeds {
  std::vector<uint32_t>
      after;  ///< by op: the last op of its block that it conflicts with, or kNone
  std::vector<uint32_t> heads;  ///< first ops of bodies (of one block) whose rounds conflict
};

/// A sync that is not there: `op` must follow `cause`, in a pipeline perhaps that of the last
/// round.
struct MissingSync {
  uint32_t op, cause;
  const char* why;
};

/// The syncs of one rank's blocks.
class BlockSyncs {
 public:
  explicit BlockSyncs(const Program& program) : program_(program) {}

  /// Finds where syncs are missing, and which of the author's are.
  void find(uint32_t rank, const BlockSequence& order, const BlockNeeds& needs);
  /// Makes the list with the syncs that are needed, and counts those added and removed.
  /// Those removed are noted in the rank.
  void apply(Rank& rank, PassContext& context) const;
  /// What apply() would add.
  const std::vector<MissingSync>& missing() const { return missing_; }

 private:
  enum Mark : uint8_t { kNothing = 0, kBefore = 1, kBeforeLoop = 2, kStays = 4, kFirstOfRound = 8 };
  enum class Need : uint8_t { none, may, must };

  /// What has happened: positions of the last ops that did something, or kNone.
  struct Events {
    uint32_t worked = kNone, posted = kNone, waited = kNone, polled = kNone, published = kNone;
    uint32_t met = 0;  ///< position of the first op since
  };
  struct Since {
    Events all;                ///< since the last meeting that stays
    uint32_t written = kNone;  ///< position of the author's last sync that has not been needed yet
    Events after;              ///< since that one
  };
  /// Why an op needs a meeting, and which op it must follow.
  struct Reason {
    Need need = Need::none;
    uint32_t cause = kNone;
    const char* why = "";
  };

  void mark_round(uint32_t head);
  void walk_block(uint32_t begin, uint32_t end);
  void walk_loop(uint32_t begin, uint32_t end, Since& since);
  void enter_loop(uint32_t begin, uint32_t end, Since& since);
  void step(uint32_t at, Since& since, uint32_t begin);
  void advance(uint32_t at, Since& since) const;
  void keep(Since& since);
  Reason reason(uint32_t at, const Events& events, uint32_t begin) const;
  bool is_held_back(uint32_t at) const;
  void mark_missing(uint32_t op, uint8_t mark, const Reason& reason);
  void add_before_loop(const std::vector<Op>& ops, size_t i, std::vector<Op>& out) const;
  const Op& op_at(uint32_t at) const { return (*ops_)[order_->ops[at]]; }

  const Program& program_;
  const std::vector<Op>* ops_ = nullptr;
  const BlockSequence* order_ = nullptr;
  const BlockNeeds* needs_ = nullptr;
  std::vector<uint8_t> roles_, marks_;  ///< by op
  bool in_rounds_ = false;              ///< a body follows its own end
  std::vector<MissingSync> missing_;
};

}  // namespace mscclc::order
