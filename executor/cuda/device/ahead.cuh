// What orders a launch with the kernels before and after it on its stream (programmatic
// dependent launch, compute capability 9.0 and up; executor/early_launch.h says when the next one
// may begin). On older devices, and in launches that are not early, streams order kernels anyway.
#pragma once

#include <cuda_runtime.h>

#include "executor/cuda/device/access.cuh"

namespace mscclc::cuda {

/// What a launch has that may begin before the kernel ahead has ended.
inline cudaLaunchAttribute may_begin_early() {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  return early;
}

/// Lets the next launch begin, once a thread of every block has called this, or the block has
/// ended. REQUIRES: await_kernel_ahead(), or there would be three launches at once.
__device__ inline void let_next_begin() { launch_dependents(); }

/// Waits until the kernel ahead has ended, and what it wrote is seen. Costs nothing once it has.
/// `frees_next`: the next launch may begin then (LaunchPlan::frees_next).
__device__ inline void await_kernel_ahead(bool frees_next) {
  await_launch_ahead();
  if (frees_next) let_next_begin();
}

}  // namespace mscclc::cuda
