// The CUDA blocks that run one thread block of a plan: one, or the blocks of a cluster, which share
// the threads of a compiled kernel of rows (MSCCLC_CLUSTER, executor/compiled/emit.h): a
// multiprocessor moves and computes but a part of a row then. All other code speaks of a thread
// block as if it were one.
//
// Each CUDA block has shared memory, with the block's state, of its own. A value for all threads
// goes to the shared memory of each (SharedFloats). Nothing may be sent there after its threads
// have ended, so a warp that gives up waits for the others (exit_block_thread()).
#pragma once

#include <cstdint>

#include "executor/cuda/device/access.cuh"

#ifdef MSCCLC_ON_HOST
#include "executor/cuda/host/cluster_access.h"
#else

#if defined(MSCCLC_CLUSTER) && __CUDA_ARCH__ >= 900
#define MSCCLC_CLUSTER_BLOCKS MSCCLC_CLUSTER
// A multiprocessor holds as many threads as one block would have: a GPU that has room for blocks
// has room for clusters.
#define MSCCLC_CLUSTER_BOUNDS(threads)   \
  __cluster_dims__(MSCCLC_CLUSTER, 1, 1) \
      __launch_bounds__((threads) / MSCCLC_CLUSTER, MSCCLC_CLUSTER)
#else
#define MSCCLC_CLUSTER_BLOCKS 1
#define MSCCLC_CLUSTER_BOUNDS(threads) __launch_bounds__(threads)
#endif

namespace mscclc::cuda {

/// May a thread block be several CUDA blocks here? How many it is.
inline constexpr bool kHasClusters = MSCCLC_CLUSTER_BLOCKS > 1;
__device__ constexpr uint32_t cluster_blocks() { return MSCCLC_CLUSTER_BLOCKS; }

/// Floats, one of each warp of a thread block, for all its threads, twice: they take turns. A count
/// of bytes in each CUDA block says when all have come (PTX: mbarrier, st.async).
struct SharedFloats {
  alignas(16) float of_warp[2][32];
  uint64_t arrived[2];
  unsigned long long left[2];  ///< how many threads of each warp have given up: a byte
};

/// All threads of the cluster meet; stores before need not be seen after.
__device__ __forceinline__ void meet_cluster() {
#if MSCCLC_CLUSTER_BLOCKS > 1
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                   : "memory");
#endif
}
/// The same, of a warp's last thread that gives up. What was sent to it lands before this returns.
__device__ inline void leave_cluster() {
#if MSCCLC_CLUSTER_BLOCKS > 1
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
  __nanosleep(20000);
#endif
}

// Below here: for clusters alone.

__device__ __forceinline__ uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
/// By one thread of each CUDA block, before all threads of the cluster meet.
__device__ __forceinline__ void prepare(SharedFloats& floats) {
  for (uint32_t turn = 0; turn < 2; ++turn) {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&floats.arrived[turn]))
        : "memory");
    floats.left[turn] = 0;
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Sends the float of a warp to CUDA block number `part`.
__device__ __forceinline__ void send(SharedFloats& floats, uint32_t turn, uint32_t warp, float x,
                                     uint32_t part) {
  asm volatile(
      "{ .reg .b32 to, count;\n"
      "mapa.shared::cluster.u32 to, %0, %3;\n"
      "mapa.shared::cluster.u32 count, %1, %3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %2, [count]; }" ::"r"(
          shared_address(&floats.of_warp[turn][warp])),
      "r"(shared_address(&floats.arrived[turn])), "r"(__float_as_uint(x)), "r"(part)
      : "memory");
}
/// By one thread of each CUDA block, once a turn: how many bytes come.
__device__ __forceinline__ void expect(SharedFloats& floats, uint32_t turn, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(&floats.arrived[turn])),
               "r"(bytes)
               : "memory");
}
/// Have they come? `parity`: of how often the turn was taken before.
__device__ __forceinline__ bool have_come(const SharedFloats& floats, uint32_t turn,
                                          uint32_t parity) {
  uint32_t come;
  asm volatile(
      "{ .reg .pred come;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 come, [%1], %2;\n"
      "selp.u32 %0, 1, 0, come; }"
      : "=r"(come)
      : "r"(shared_address(&floats.arrived[turn])), "r"(parity)
      : "memory");
  return come != 0;
}

}  // namespace mscclc::cuda
#endif

namespace mscclc::cuda {

/// Which CUDA block of the thread block's this is.
__device__ __forceinline__ uint32_t part_of_block() { return blockIdx.x % cluster_blocks(); }
/// The thread block's number among those of the rank.
__device__ __forceinline__ uint32_t block_of_rank() { return blockIdx.x / cluster_blocks(); }
/// The thread's number in the thread block, and how many threads that has.
__device__ __forceinline__ uint32_t thread_of_block() {
  return part_of_block() * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ uint32_t threads_of_block() { return cluster_blocks() * blockDim.x; }

/// All threads of the thread block meet. What those of another CUDA block stored before need not be
/// seen then, unless it went to shared memory: a release would wait for all packets that are on
/// their way (executor/compiled/cluster.h says why nothing else is stored before).
__device__ __forceinline__ void meet_in_block() {
  __syncthreads();
  meet_cluster();
}
/// What the warps of this thread block have of the reduction at hand.
__device__ __forceinline__ SharedFloats& shared_floats() {
  MSCCLC_SHARED(SharedFloats, floats);
  return floats;
}
/// Ends a thread that gives up. Others of its warp may wait for it, so only the last one stays
/// until all warps of the cluster have ended, or given up too, and their shared memory may go.
[[noreturn]] __device__ inline void exit_block_thread() {
  if (cluster_blocks() == 1) exit_thread();
  if constexpr (kHasClusters) {
    const uint32_t warp = threadIdx.x / 32, at = warp % 8 * 8;
    if ((atomicAdd(&shared_floats().left[warp / 8], 1ull << at) >> at & 255) == 31) leave_cluster();
  }
  exit_thread();
}

}  // namespace mscclc::cuda
