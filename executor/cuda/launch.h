// What the host tells the interpreter kernel, and how it is launched. Plain structs of device
// addresses: nothing here needs nvcc.
#pragma once

#include <cstdint>

#include "executor/interpreter/layout.h"

namespace mscclc::cuda {

/// A buffer that a rank's ops address.
struct BaseAddress {
  uint8_t* address;
  uint64_t copy_stride;
  uint64_t copies;
};

/// This rank's end of a channel. The partner adds to `arrived`.
struct DeviceChannelEnd {
  unsigned long long* arrived;  ///< this end's own count of signals, in this rank's memory
  unsigned long long* partner;  ///< the partner end's, in the peer's memory; nullptr: nobody
  unsigned long long taken;     ///< signals that waits have taken
};

struct Barrier {
  unsigned long long arrived;  ///< blocks that have come, all meetings together
  uint64_t members;
};

/// Why a block gave up waiting. Zero: it has not.
struct Fault {
  uint32_t happened;
  uint32_t rank, block, op;  ///< op: index among the rank's ops in the IR
};

/// One rank as its blocks see it, in device memory.
struct RankContext {
  device::RankView view;
  const uint32_t* block_begin;
  const BaseAddress* bases;
  DeviceChannelEnd* channels;
  unsigned long long* semaphores;
  Barrier* barriers;
  unsigned long long* call;   ///< number of the present call; the last block to end adds one
  unsigned int* blocks_done;  ///< of this call
  Fault* fault;               ///< of all ranks
  uint32_t rank, blocks;
};

/// One launch: one call on all the ranks of `contexts`.
struct LaunchPlan {
  const RankContext* contexts;      ///< in device memory
  const uint32_t* rank_of_block;    ///< for each block of the grid: which context ...
  const uint32_t* number_of_block;  ///< ... and which of its blocks
  uint32_t blocks, threads;
  Dtype dtype;
  ReduceOp reduce;
  uint32_t contributions;
  uint64_t patience;  ///< clock cycles after which a wait is given up
};

/// Launches the interpreter for one call; blocks wait for one another, so all must fit on the
/// device at once. Returns what the launch call returned (cudaError_t).
int launch(const LaunchPlan& plan, void* stream);

}  // namespace mscclc::cuda
