// What the driver of CUDA says of the GPUs. It is only asked: no context and no memory is made.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mscclc::doctor {

struct GpuFacts {
  std::string name;
  int major = 0, minor = 0;    ///< compute capability
  bool shares_fd = false;      ///< memory by file descriptors
  bool shares_fabric = false;  ///< memory by handles of the fabric
  bool multicast = false;
  bool dma_buf = false;
  std::vector<bool> reaches;  ///< by GPU: is its memory within reach? True for itself
};

struct CudaFacts {
  bool asked = false;  ///< the library of the driver was there to be asked
  std::string error;   ///< why it did not answer; empty: it did
  int version = 0;     ///< 12040: CUDA 12.4
  std::vector<GpuFacts> gpus;
};

/// A function of the driver by its name; nullptr: it has none.
using FindSymbol = std::function<void*(const char* name)>;

/// Asks a driver.
CudaFacts ask_driver(const FindSymbol& find);
/// Asks that of this machine. A build without the GPU part cannot.
CudaFacts ask_this_driver();

}  // namespace mscclc::doctor
