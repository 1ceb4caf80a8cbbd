// What parts of a program are, apart from their numbers and names: blocks, channels, scratch and
// semaphores get colours, by what they are and by how they are used, until nothing distinguishes
// more of them. Programs with the same colours differ in numbers alone.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::diff {

/// The colours of one rank.
struct RankIdentity {
  std::vector<uint64_t> blocks;            ///< by place in `places`
  std::vector<std::vector<uint32_t>> ops;  ///< of each block, in order
  std::vector<int64_t> places;             ///< a block's number; groups and none after it
  std::vector<uint64_t> channels, buffers, semaphores;
  uint64_t all = 0;  ///< of the rank as a whole
};

std::vector<RankIdentity> identities(const Program& program);

/// What an op is without regard to which of several channels, buffers or semaphores it uses. Peers
/// are absolute, or (`turned`) seen from the rank, and then chunks do not count. Neither does the
/// unit of its pipeline.
uint64_t coarse_identity(const Program& program, uint32_t rank, const Op& op, bool turned = false);

/// What a buffer is apart from its name and use.
uint64_t coarse_identity(const Buffer& buffer);

/// Combines what came before with one value more.
uint64_t mixed(uint64_t before, uint64_t value);

}  // namespace mscclc::diff
