// What a rank leaves behind that has given up: the calls queued after that one do nothing, in all
// of its blocks, and are waited for by no other launch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/cuda/testing/ranks.h"

namespace mscclc {

/// Three calls of rank 0 of testing::sums_apart(), whose input is the number of the call + 1; it
/// gives up in the first, as rank 1 comes later. Then rank 1 has its own, whose input is 10. What
/// it takes for the sum of the first call; nothing: that could not be run.
std::optional<float> sum_after_giving_up(cuda::CudaRanks& ranks,
                                         const cuda::CudaRanks::Options& options, uint64_t seed);

/// Three calls of all ranks, which give up in the first. How many blocks have begun in them;
/// nothing: they could not be run.
std::optional<uint32_t> begun_after_giving_up(cuda::CudaRanks& ranks,
                                              cuda::CudaRanks::Options options, uint64_t seed);

/// Six calls of rank 0, which waits for rank 1 in vain and gives up in the first, and three more:
/// do the blocks stay with what they have counted? Nothing: they could not be run.
std::optional<bool> counts_stand_after_giving_up(cuda::CudaRanks& ranks,
                                                 const cuda::CudaRanks::Options& options,
                                                 uint64_t seed);

/// Three calls of rank 0, which waits for rank 1 in vain until its patience is over: is the first
/// one's number what the blocks of rank 0 are marked with? Nothing: they could not be run.
std::optional<bool> marked_by_first_to_give_up(cuda::CudaRanks& ranks,
                                               const cuda::CudaRanks::Options& options,
                                               uint64_t seed);

/// Thread blocks of all ranks.
uint32_t blocks_of(const Program& program);

}  // namespace mscclc
