// Which launches may be on a GPU beside one another, so that none keeps from another the room that
// it needs to end.
//
// Thread blocks wait for blocks of other ranks, and hold their place while they do. If one GPU were
// full of blocks of one call, and another of blocks of a later one, neither call would end. So the
// launches of a device, in the order in which the host makes them, are divided into *epochs*: those
// of one epoch have no more blocks together than the GPU has multiprocessors, counting for each
// stream its largest launch; and a launch begins when all blocks of all earlier epochs have begun.
//
// Then every call ends, if all ranks launch in one order. Take the earliest that does not. The
// calls before it have ended. Of those after it, only calls of its own epoch can have begun while
// some of its blocks have not, one of each stream (below); together with its own blocks theirs are
// no more than there are multiprocessors. A block of ours takes one multiprocessor at most, so one
// is free for each block of the call: all of them begin, on every rank, and the call ends. Users'
// kernels do not wait for ranks, so their room comes free by itself.
//
// Calls that ranks launch in different orders (LaunchPlan::any_order) have epochs of their own, all
// of which fit together, so that there they need no order. Only what comes between two such epochs
// has its place in the order of all ranks.
//
// One of each stream: a launch that may begin early (executor/early_launch.h) does so when the one
// before it on its stream can end whatever happens, so that only the later one counts. A small
// launch that has an epoch's room to itself may let the next one begin at once instead, be it ours
// or a kernel of the user's that fills the GPU: it takes the room of all multiprocessors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace mscclc::cuda {

/// The launches of one sequence: those that run when they are made, or those of one capture.
/// Thread safety: one thread at a time.
class LaunchEpochs {
 public:
  struct Launch {
    uint64_t stream;         ///< its id
    uint32_t blocks;         ///< at least one
    uint32_t room;           ///< multiprocessors that the stream has
    bool would_free;         ///< small, and early: it would let the next one begin at once
    bool any_order = false;  ///< LaunchPlan::any_order
  };
  struct InEpochs {
    bool frees = false;  ///< it may let the next one begin at once
    bool opens = false;  ///< it is the first of a new epoch
    bool waits = false;  ///< it must begin after all of earlier epochs: its stream does not say so
  };
  /// Takes the next launch.
  InEpochs add(const Launch& launch);
  /// A stream could not be ordered after the earlier epochs: its next launch must be.
  void forget(uint64_t stream);

 private:
  /// So many launches of one stream in a row, and the next ones are taken to be the only ones.
  static constexpr uint32_t kAlone = 64;

  uint64_t last_stream_ = 0;
  uint32_t in_a_row_ = kAlone;            ///< on that stream; no other stream has launched yet
  std::map<uint64_t, uint32_t> streams_;  ///< of the epoch, with their largest launch's room
  uint64_t used_ = 0;                     ///< sum of those
  bool any_order_ = false;                ///< of the epoch's launches
  uint32_t room_ = ~uint32_t{0};          ///< the least that a stream of the epoch has
  bool first_epoch_ = true;
  std::optional<uint64_t> had_last_to_itself_;  ///< the one stream of the epoch before
};

}  // namespace mscclc::cuda
