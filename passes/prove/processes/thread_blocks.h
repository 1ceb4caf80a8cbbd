// The thread blocks of a run: how far each is, what it knows, and which of them can go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "passes/prove/model/clocks.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_chains.h"

namespace mscclc::proof {

struct ThreadBlock {
  uint32_t rank = 0, begin = 0, end = 0;  ///< its ops
  uint32_t op = 0, round = 0, operand = 0;
  uint32_t now = 0;      ///< ops done, over all calls
  uint32_t settled = 0;  ///< ops that all its threads have done
  uint32_t acts = 0;     ///< ops so far that others may wait for: that give, or send packets
  Row known, entry;
  uint32_t entry_time = 0;
  std::vector<News> gains;   ///< what single threads know, and all after the next meeting
  Provenance nodes;          ///< packets that it has read in this call
  size_t settled_nodes = 0;  ///< how many of them all its threads know of
  uint32_t loop = kNone;     ///< of LoopGroups: the one of which it does a round
  bool done = false;         ///< with this call

  /// The block is in a new call, of whose beginning it knows what its caller does.
  void begin_call(const Row& caller) {
    op = begin;
    round = operand = 0;
    known = entry = caller;
    entry_time = settled = now;
    done = false;
  }
  /// What a meeting changes.
  struct Learned {
    Row known;
    std::vector<News> gains;
    uint32_t settled = 0;
  };
  Learned learned() const { return {known, gains, settled}; }
  /// Its threads may not have met since.
  void forget(const Learned& before) {
    known = before.known;
    gains = before.gains;
    settled = before.settled;
  }
  /// Adds what packets publish to what single threads know.
  void hear(const News& news) {
    if (gains.empty() || !same(gains.back(), news)) gains.push_back(news);
  }
};

class ThreadBlocks {
 public:
  explicit ThreadBlocks(const System& system);

  /// REQUIRES: the process is a block.
  ThreadBlock& operator[](uint32_t process) {
    precondition(process < blocks_.size());
    return blocks_[process];
  }
  const ThreadBlock& operator[](uint32_t process) const {
    precondition(process < blocks_.size());
    return blocks_[process];
  }
  /// REQUIRES: the block has not come to the end of its ops.
  const Op& op_of(const ThreadBlock& block) const {
    precondition(block.op < program_.ranks[block.rank].ops.size());
    return program_.ranks[block.rank].ops[block.op];
  }
  /// A block can go on.
  void wake(uint32_t process) { ready_.push_back(process); }
  /// The last that was woken, which goes on now; kNone: there is none.
  uint32_t next_ready() {
    if (ready_.empty()) return kNone;
    const uint32_t process = ready_.back();
    ready_.pop_back();
    return process;
  }

 private:
  const Program& program_;
  std::vector<ThreadBlock> blocks_;  ///< by process (empty entries for others)
  std::vector<uint32_t> ready_;
};

}  // namespace mscclc::proof
