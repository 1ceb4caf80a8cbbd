#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

ThreadBlocks::ThreadBlocks(const System& system)
    : program_(system.program()), blocks_(system.width()) {
  for (uint32_t r = 0; r < system.ranks(); ++r) {
    const std::vector<uint32_t> offsets = block_offsets(program_.ranks[r]);
    for (uint32_t b = 0; b < system.blocks(r); ++b) {
      ThreadBlock& block = blocks_[system.block_process(r, b)];
      block.rank = r;
      block.begin = offsets[b];
      block.end = offsets[b + 1];
    }
  }
}

}  // namespace mscclc::proof
