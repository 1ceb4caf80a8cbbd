// The CUDA driver as a table of functions: of libcuda.so.1, or of a fake one in tests. The whole
// runtime goes through it, except the launch of kernels, so that it needs neither nvcc nor a GPU to
// be built and tested, and a process without GPUs never loads the driver.
#pragma once

#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/devices/cuda/driver/abi.h"

namespace mscclc::cuda {

/// Functions that a driver lacks are null; load_driver() lets only those of multicast, of green
/// contexts and of dma-bufs be so.
struct Driver {
#define FUNCTION(name, version, need, parameters) abi::Result(*name) parameters = nullptr;
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION

  bool has_multicast() const;
  bool has_green_contexts() const;
};

/// The driver of this machine, loaded and initialised at the first call; stays loaded. nullptr:
/// reported (no-cuda-driver, cuda-driver-too-old, after-fork, cuda). A child of fork() loads its
/// own.
[[nodiscard]] const Driver* load_driver(Diagnostics& diagnostics);

/// The same, but not initialised by this: a later child of fork() can still have one. nullptr:
/// reported (no-cuda-driver, cuda-driver-too-old).
[[nodiscard]] const Driver* find_driver(Diagnostics& diagnostics);

/// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
std::string text_of(const Driver& driver, abi::Result result);

/// The one way in which calls of the driver are checked. True if a call went well; else reports
/// "cannot <attempt>: <what the driver says>" (cuda).
[[nodiscard]] bool succeeded(const Driver& driver, abi::Result result, const std::string& attempt,
                             Diagnostics& diagnostics);

}  // namespace mscclc::cuda
