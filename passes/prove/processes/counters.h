// Ends of channels and semaphores: counts through which blocks order themselves, and what is
// learned from each that is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/model/clocks.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/counter_users.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/knowledge.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

/// What a wait may learn, if it is not relaxed, and if it is.
struct Token {
  News strong, weak;
};

/// What has been given and not yet taken, oldest first.
class TokenQueue {
 public:
  bool empty() const { return first_ == tokens_.size(); }
  void give(Token token) { tokens_.push_back(std::move(token)); }
  /// REQUIRES: not empty.
  Token take();

 private:
  std::vector<Token> tokens_;
  size_t first_ = 0;  ///< of those not yet taken
};

class Counters {
 public:
  /// All of them must outlive it.
  Counters(const System& system, ThreadBlocks& blocks, Knowledge& knowledge, FindingList& findings);

  /// Looks at who gives and who takes; reports what cannot be decided.
  void find_users(const Cuts& cuts) { shared_ = find_shared(system_, cuts, findings_); }
  /// Takes one from each counter of an op that waits, or acquires `semaphores`; false if the block
  /// must wait for one.
  bool take(uint32_t process, const Op& op, bool semaphores);
  /// `target`: of the block's op.
  void signal(uint32_t process, const Operand& target, bool relaxed);
  void release(uint32_t process, const Operand& target);
  /// The sources of all puts so far have been read. Nothing is said of the far end.
  void flush(uint32_t process, uint32_t channel);
  /// What an op that moves data publishes when it has: the signals and flushes of its channels. One
  /// thread posts and signals; the others may lag (lemma O9).
  void publish_move(uint32_t process, const Op& op, const OpInfo& row);
  /// The call of a rank is over.
  void end_call(uint32_t rank);
  /// Every count must be back where it was, or the next calls begin with more and more. All calls
  /// of a plan do the same: `calls`, of which the surplus of one is reported.
  void report_balance(int64_t calls) const;

 private:
  struct Counter {
    TokenQueue tokens;
    uint32_t free = 0;         ///< what it begins with, not yet taken
    uint32_t waiting = kNone;  ///< a process
    int64_t balance = 0;       ///< given less taken
    /// keep_turn(): the last signal that publishes, and the last relaxed wait.
    uint64_t published = 0, relaxed = 0;
    /// take_in_turn(): the last that was taken, and what the block had done by then.
    uint64_t took = 0;
    uint32_t acts = 0;
    /// Several releasers: what each has published in this call, and how often all were taken.
    std::vector<std::vector<Token>> by_releaser;
    uint32_t taken = 0;
  };

  void keep_turn(uint32_t process, uint64_t& met, bool first);
  void take_in_turn(uint32_t process, Counter& counter);
  /// Stands for the last meeting of the block's threads.
  uint64_t meeting_of(uint32_t process) const {
    return (uint64_t{process} + 1) << 32 | blocks_[process].settled;
  }
  void take_shared(Counter& counter, uint32_t semaphore, ThreadBlock& block);
  void give(Counter& counter, Token token);

  const System& system_;
  const Program& program_;
  ThreadBlocks& blocks_;
  Knowledge& knowledge_;
  FindingList& findings_;
  std::vector<Counter> ends_, semaphores_;
  SharedSemaphores shared_;
};

}  // namespace mscclc::proof
