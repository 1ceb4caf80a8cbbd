// Which GPU a rank has, and what part of it where ranks share one. They do so as clients of
// NVIDIA's MPS, by which kernels of several processes run side by side; without it processes take
// turns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/support/result.h"
#include "tools/bench/support/options.h"

namespace mscclc::bench {

/// How much of a GPU's multiprocessors a client of MPS may use, in percent. Read when the process
/// opens the GPU.
inline constexpr const char* kMpsPercentage = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

inline constexpr const char* kSocketThreads = "MSCCLC_SOCKET_THREADS";

/// The GPU of a rank where there are `gpus`: neighbours share one; simulated nodes take turns where
/// there are fewer than ranks.
int gpu_of(uint32_t rank, const Options& options, int gpus);

/// How many GPUs the ranks have in all.
uint32_t gpus_in_use(const Options& options, int gpus);

/// What kSocketThreads should be where simulated nodes share GPUs, and so the processors, of
/// which each takes all to be its GPU's. nullopt: they share none.
std::optional<uint32_t> socket_threads(const Options& options, int gpus, uint32_t processors);

/// What of a GPU each of the ranks that share it may use, so that the blocks of all find room.
uint32_t share_in_percent(uint32_t ranks_per_gpu);

/// Why ranks cannot share a GPU. `mps`: whether the process is a client of MPS,
/// where the driver says so. `percentage`: what the environment says of kMpsPercentage.
std::optional<Error> share_fault(uint32_t ranks_per_gpu, std::optional<bool> mps,
                                 const std::string& percentage);

/// "2 x NVIDIA H200", or "2 ranks on 1 x NVIDIA H200, 66 multiprocessors each".
std::string machine_text(uint32_t ranks, uint32_t gpus, const std::string& model,
                         uint32_t multiprocessors);

}  // namespace mscclc::bench
