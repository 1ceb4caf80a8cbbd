// May two ops of one place become one? Then one of them moves to where the other stands, past all
// that is written between them, which nothing may notice:
//  - No cell that the moving op touches is used by an op in between, one of both writing.
//  - A data op stays between the waits, signals, syncs and barriers it was written between, and
//    between the ops at which the sync pass will make its place wait (fuse_edges.h).
//  - Signals and releases move past each other, and so do waits, acquires and flushes.
//  - To read a sentinel slot is to write it, too, as that empties it: no op takes from such a slot
//    twice, or stores into one that it takes from (ir/report/coinciding.h).
//  - What polls packets moves past nothing in its place, and only if nothing depends on the ops
//    that would then have to wait for the packets, too.
// Ops are added in written order; what happened last in each cell and each block is kept, so a
// question costs no walk through the ops in between.
#pragma once

#include <array>
#include <vector>

#include "passes/fuse/reorder/fuse_edges.h"
#include "passes/fuse/reorder/fuse_touches.h"

namespace mscclc::fusion {

/// What goes from the left op of a pair to the right one.
struct Flow {
  uint32_t uses = 0;          ///< sources of the right op that are results of the left one
  bool rewrites = false;      ///< the right op writes the left one's result again
  bool channels = false;      ///< both use the same channel ends
  bool waits_anyway = false;  ///< the right op polls only packets that the left one makes or polls
};

/// Where two ops can be one.
enum class Meet : uint8_t { never, at_left, at_right };

class Order {
 public:
  explicit Order(const Program& program);
  /// Begins with a rank. False if it refers to more chunks than can be looked at.
  bool start(uint32_t rank);
  /// Begins with a run of its ops, [first, last], after the runs before; all pairs that are asked
  /// about lie in one run. False if it refers to more chunks than can be looked at.
  bool start_run(Number first, Number last);
  /// The next op of the run, in written order.
  void add(Number op);
  Meet meet(Number left, Number right, const Flow& flow) const;
  /// Makes one op of two; returns its number, one of theirs. The other number is gone.
  Number merge(Number left, Number right, Meet where);

  const Places& places() const { return places_; }
  /// The ops, in order, that an op has been made of: each() for every one.
  template <class Each>
  void each_part(Number op, Each&& each) const {
    for (Number part = first_[op]; part != kNoOp; part = next_[part]) each(part);
  }
  /// The first and the last of these ops, and the one after a part.
  Number first_part(Number op) const { return first_[op]; }
  Number last_part(Number op) const { return last_[op]; }
  Number next_part(Number part) const { return next_[part]; }
  /// The last op that wrote what `op` reads: each() for every chunk that one of its parts reads.
  template <class Each>
  void each_writer(Number part, Number op, Each&& each) const {
    for (const Touch& touch : touches_.of(part)) {
      if (!touches_.use(touch.use).write) each(cells_[touch.cell].write.other(op));
    }
  }

 private:
  /// The last three ops that did something. Of two it is known which of their uses it was (kNone:
  /// several).
  struct Latest {
    Number last = kNoOp, prev = kNoOp, third = kNoOp;
    uint32_t use = kNone, prev_use = kNone;
    /// The last one that is not `self`.
    Number other(Number self) const { return last == self ? prev : last; }
    uint32_t use_of(Number op) const { return op == last ? use : op == prev ? prev_use : kNone; }
    void record(Number op, uint32_t with = kNone);
    void move(Number from, Number to);
  };
  struct Cell {
    Latest write, read;
  };
  /// What ops do to their place, as bits.
  enum Role : uint8_t { kData = 1, kPublishes = 2, kAwaits = 4, kPolls = 8, kWall = 16 };
  struct Block {
    Latest data, publishes, awaits, polls;
    Latest waits_for_others, others_wait;  ///< edges
    Number wall = kNoOp;
    uint32_t loop = kNone - 1;
  };
  /// The same for a place, without the op that is asked about.
  struct Window {
    Number data = 0, publishes = 0, awaits = 0, polls = 0, waits_for_others = 0, others_wait = 0;
    Number wall = 0;
  };

  void add_unplaced(Number op);
  Window window(Number op) const;
  bool may_rise(Number left, Number right, const Window& since, const Flow& flow) const;
  bool may_sink(Number left, Number right, const Window& since, const Flow& flow) const;
  bool fits(Number left, Number right, const Flow& flow, bool rising) const;
  bool fits_read(Number left, Number right, const Touch& touch, bool rising) const;
  bool fits_write(Number left, Number right, const Touch& touch, const Flow& flow,
                  bool rising) const;
  bool fits_second_write(Number left, const Touch& touch, const Flow& flow) const;
  bool is_free(Number left, Number right) const;
  bool same_stretch(uint32_t a, uint32_t b) const {
    return a != kNone && touches_.use(a).at == touches_.use(b).at;
  }
  template <class Change>
  void each_latest(Number op, Change&& change);

  const Program& program_;
  std::array<uint8_t, kKinds> role_of_;  ///< by OpKind
  const Rank* rank_ = nullptr;
  uint32_t rank_id_ = 0;
  bool whole_ = false;  ///< touches are of the whole rank
  Places places_;
  Touches touches_;
  Edges edges_;
  std::vector<Cell> cells_;
  std::vector<Block> blocks_;
  Number wall_ = kNoOp;                      ///< of all blocks
  std::vector<uint8_t> roles_, edge_bits_;   ///< by op number, of what it is made of
  std::vector<Number> first_, last_, next_;  ///< by op number: its parts
};

}  // namespace mscclc::fusion
