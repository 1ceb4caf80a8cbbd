// Counts that some give to and others take from: the signals of a channel end, the releases of a
// semaphore. What follows from how many have been taken is here, for the passes, the prover and the
// executor alike.
//
//  - One gives and one takes: the k-th taken is the k-th given.
//  - Several give: it is not known whose came first, but see certain_gives().
#pragma once

#include <cstdint>

#include "ir/program/program.h"
#include "ir/support/precondition.h"

namespace mscclc {

/// The one that does something, if only one does: a thread block, a place, a process, by number.
class Sole {
 public:
  void add(uint32_t who) { who_ = who_ == kNone || who_ == who ? who : kSeveral; }
  bool one() const { return who_ < kSeveral; }
  bool several() const { return who_ == kSeveral; }
  /// REQUIRES: one().
  uint32_t who() const {
    precondition(one());
    return who_;
  }

 private:
  static constexpr uint32_t kSeveral = kNone - 1;
  uint32_t who_ = kNone;  ///< kNone: none so far
};

/// How many gives of one giver are over for certain once `taken` have been taken, of a count that
/// began with `initial` and to which all together give `all`, that one `own` of them: the initial
/// value and what the others give come to no more than `initial + all - own`. May exceed `own`
/// where more is taken than given. REQUIRES: own <= all.
constexpr uint64_t certain_gives(uint64_t taken, uint64_t initial, uint64_t all, uint64_t own) {
  precondition(own <= all);
  const uint64_t others = initial + all - own;
  return taken > others ? taken - others : 0;
}

}  // namespace mscclc
