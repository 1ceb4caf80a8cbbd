// Barriers, at which several blocks of a rank meet.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/knowledge.h"
#include "passes/prove/processes/loop_rounds.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

class BlockBarriers {
 public:
  /// All of them must outlive it.
  BlockBarriers(const System& system, ThreadBlocks& blocks, Knowledge& knowledge,
                LoopRounds& rounds);

  /// The block has come to its op, a barrier; false if it must wait. If it is the last one the
  /// others go on.
  bool arrive(uint32_t process, const Op& op);

 private:
  struct Barrier {
    std::vector<uint32_t> blocks;   ///< sorted
    std::vector<uint32_t> arrived;  ///< processes
  };

  Barrier& barrier_of(uint32_t rank, const Op& op);

  const System& system_;
  ThreadBlocks& blocks_;
  Knowledge& knowledge_;
  LoopRounds& rounds_;
  std::vector<std::vector<Barrier>> barriers_;  ///< by rank
};

}  // namespace mscclc::proof
