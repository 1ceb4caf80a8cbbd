// What processes know of each other: what a block publishes, what a block learns when its threads
// meet, what a rank's caller knows when all its blocks have ended, and what follows of ports.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/precondition.h"
#include "passes/prove/model/clocks.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/row_joins.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_chains.h"
#include "passes/prove/processes/arrivals.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

class Knowledge {
 public:
  /// All of them must outlive it.
  Knowledge(const System& system, const CallOrder& calls, ThreadBlocks& blocks);

  /// What a block publishes: what all its threads have done and know, as of their last meeting. A
  /// thread that signals alone knows no more about the others.
  News strong_news(uint32_t process) const;
  /// What it publishes without release and acquire.
  News weak_news(uint32_t process) const;
  /// The threads of the block meet: what each has done and seen, all have. `surely`: else forget()
  /// follows, and which packets they have read does not become known at all, as searches among
  /// these cannot be taken back.
  void meet(uint32_t process, bool surely = true);
  /// The threads of the block may not have met since it knew that.
  void forget(uint32_t process, const ThreadBlock::Learned& before);

  /// What the caller of a rank knows.
  const Row& caller(uint32_t rank) const { return caller_[rank]; }
  Row& caller(uint32_t rank) { return caller_[rank]; }
  /// The caller of a rank hands over the buffers of the rank's call.
  void begin_call(uint32_t rank) {
    caller_[rank].raise(system_.caller_process(rank), calls_.now(rank) + 1, system_.clock());
  }
  /// All blocks of a rank have ended its call: all they did is over, and all they know the caller
  /// knows. Gives the packets that they have read.
  std::vector<ReadValue> end_call(uint32_t rank);

  /// How many ops have been posted to a port. REQUIRES: the process is a port's.
  uint32_t posted(uint32_t port) const {
    precondition(port >= system_.width());
    return posted_[port - system_.width()];
  }
  /// One more is: gives how many are then. `reader`: the port as reader.
  uint32_t post(uint32_t reader) {
    precondition(reader >= system_.width());
    uint32_t& posted = posted_[reader - system_.width()];
    posted_[reader + 1 - system_.width()] = ++posted;
    return posted;
  }

  /// Is the event over, knowing `row` and that `done` ops of `knower` are over?
  bool known(const Row& row, uint32_t knower, uint32_t done, const Event& event) const {
    if (event.process < system_.width()) {
      return row[event.process] >= event.time || (event.process == knower && done >= event.time);
    }
    return known_of_port(row, knower, done, event);
  }

 private:
  bool known_of_port(const Row& row, uint32_t knower, uint32_t done, const Event& event) const;
  void learn_of_port(uint32_t process, uint32_t port, const News& news, bool surely);

  /// A port and the block that has found out something of it, as arrivals_ has them.
  struct Learner {
    uint32_t port, block;
  };
  Learner learner(uint32_t process, uint32_t port) const;

  const System& system_;
  const CallOrder& calls_;
  ThreadBlocks& blocks_;
  std::vector<uint32_t> posted_;  ///< by process of a port, from the first: ops posted
  Arrivals arrivals_;
  std::vector<Learner> unsure_;  ///< at meetings that are to be forgotten
  std::vector<Row> caller_;      ///< by rank
  PagePool pages_;               ///< of these rows and of blocks', which know mostly the same
  RowJoins joins_;
  std::vector<Row> rows_;  ///< that are joined
};

}  // namespace mscclc::proof
