// The runs of ops in which some may fuse, found by kind and block alone: from the first op that may
// be the left one of a pair to the last right one. Whatever is written the way it should be, or
// between waits, costs next to nothing.
#pragma once

#include <array>
#include <vector>

#include "passes/fuse/reorder/fuse_places.h"

namespace mscclc::fusion {

/// Ops [first, last] of a rank.
struct OpRange {
  Number first, last;
};

class OpRanges {
 public:
  OpRanges();
  /// The runs of a rank, in order; good until the next call.
  const std::vector<OpRange>& find(const Rank& rank);

 private:
  /// Ops of a block that later ones may still fuse with.
  struct Open {
    KindBits kinds = 0;
    uint32_t loop = kNone;
  };
  using Since = std::array<Number, kKinds>;  ///< by kind: the first op that may be one

  /// What the right op of a pair may become, one pair after the other, and the left ops of these.
  struct Steps {
    KindBits lefts = 0, results = 0;
  };

  Steps follow(KindBits kinds, OpKind right) const;
  static Number earliest(const Since& since, KindBits kinds, Number first);
  static void note(Open& open, Since& since, KindBits kinds, Number first);
  KindBits after(const OpInfo& row) const;
  void add(Number first, Number last);

  KindBits data_ = 0, control_ = 0;                 ///< kinds of op
  std::array<KindBits, kKinds> lefts_{}, after_{};  ///< by kind
  std::vector<Open> open_;                          ///< by block, then of groups
  std::vector<Since> since_;                        ///< the same
  std::vector<OpRange> runs_;
};

}  // namespace mscclc::fusion
