// For CUDA kernels of yours that run before calls: one line that lets the next call get ready while
// the kernel still works. Needs nothing but CUDA; docs/design/gpu.md has examples, and says what
// holds.
#pragma once

#include <cuda_runtime.h>

namespace mscclc {

/// Lets the launch after this kernel begin, once a thread of every block of this kernel has called
/// this, or its block has ended. A call then gets ready, and waits for the end of this kernel
/// before it reads or writes a buffer or signals a peer: what the kernel does after this
/// line needs no care.
///
/// It first waits for the end of the launch before this kernel, which takes time only where this
/// kernel was launched with programmatic stream serialization; the results of that launch are there
/// from this line on. Below compute capability 9.0 it does nothing: streams order launches.
__device__ inline void let_next_call_begin() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace mscclc
