// The interpreter kernel as the host sees it: how a launch (executor/launch.h) is started, and how
// many blocks may run at once. Nothing here needs nvcc.
#pragma once

#include <cstdint>

#include "executor/interpreter/part_sum.h"
#include "executor/launch.h"

namespace mscclc::cuda {

/// Threads of a block, at most.
inline constexpr uint32_t kMaxThreads = 1024;

/// The threads that blocks have where a plan asks for `wanted`: whole warps, and no more than the
/// kernel takes, which may be fewer than kMaxThreads. Threads carry no meaning: what a plan does
/// is the same for any number.
constexpr uint32_t block_threads(uint32_t wanted) {
  const uint32_t warps = wanted / 32 + (wanted % 32 != 0 ? 1 : 0);
  return warps == 0 ? 32 : warps > kMaxThreads / 32 ? kMaxThreads : 32 * warps;
}

/// Starts one call, asynchronously: one kernel of block_threads(plan.threads) threads, which may be
/// captured in a graph. All pointers of the plan are addresses that the device reaches. Blocks wait
/// for one another: the caller has made sure that all blocks of the launch fit on the device
/// (most_resident_blocks()).
/// Returns what the launch call returned (cudaError_t).
int launch(const device::LaunchPlan& plan, void* stream);

/// Multiplies `count` elements of a float type, asynchronously, by a kernel that waits for nothing
/// but what is before it on the stream. `to` may be `from`, and overlaps it in no other way.
/// Returns what the launch returned (cudaError_t).
int scale(Dtype dtype, void* to, const void* from, uint64_t count, double factor, void* stream);

/// Loads the kernels of scale(), as load_kernels() does the others.
int load_scale_kernels();

/// Beside GEMMs, on streams (runtime/api/gemm.h, GemmStreams), asynchronously. Each returns what
/// the launch returned (cudaError_t). A word counts for this GPU's blocks.
int raise_flag(uint32_t* word, uint32_t times, void* stream);
int await_flag(const uint32_t* word, const uint32_t* ended, uint32_t* runs, uint32_t raises,
               bool counts, void* stream);
/// REQUIRES: f32, f16 or bf16; pointers at multiples of 16 bytes.
int add_parts(const device::PartSum& sum, void* stream);
/// Loads the kernels of these, as load_kernels() does the others.
int load_gemm_steps();

/// What the kernels can do that are loaded on a device.
struct Abilities {
  bool early_launch = false;       ///< LaunchPlan::early
  bool early_in_captures = false;  ///< ... also of launches that a graph captures
};

/// Loads all kernels on the current device, which would otherwise happen when each is first
/// launched: the driver may have to wait for kernels that run, and they for the one to be loaded,
/// and captures may forbid it. Returns an error (cudaError_t) where one cannot be loaded.
int load_kernels(Abilities* abilities);

/// Gives threads of the current device as much stack as any kernel needs, from the first launch on.
/// The driver would otherwise wait, at a launch that needs more than the launches before it, until
/// no kernel runs: where one waits for a copy that this process has yet to make, for good. Returns
/// an error (cudaError_t).
int keep_stack();

/// True if a fast kernel exists; otherwise the generic one runs.
bool has_fast_kernel(const device::LaunchPlan& plan);

/// Blocks of block_threads(plan.threads) threads that the current device can hold at once of the
/// kernel that runs `plan`; 0 with `*error` (cudaError_t) where it cannot run it at all.
uint32_t most_resident_blocks(const device::LaunchPlan& plan, int* error);

}  // namespace mscclc::cuda
