// NVIDIA's compiler, CUDA source to a cubin: nvcc as a process, or libnvrtc, which comes with
// frameworks that have no nvcc.
#pragma once

#include <memory>
#include <string>

#include "ir/base/result.h"

namespace mscclc {

class CubinCompiler {
 public:
  virtual ~CubinCompiler() = default;
  /// Compiles the source of kernels (executor/compiled/emit.h) for `architecture` ("sm_90").
  /// The error has what the compiler says. Thread safety: any thread.
  virtual Result<std::string> compile(const std::string& source,
                                      const std::string& architecture) const = 0;
};

inline constexpr const char* kNoCubinCompiler =
    "there is no nvcc in CUDA_HOME, PATH or /usr/local/cuda, and no libnvrtc that can be loaded; "
    "'--emit=cuda' writes the source for a machine that has one of them";

/// nvcc, or else libnvrtc. nullptr: neither is there.
std::unique_ptr<CubinCompiler> find_cubin_compiler();

/// nvcc of CUDA_HOME, of PATH, or of /usr/local/cuda. nullptr: there is none.
std::unique_ptr<CubinCompiler> find_nvcc();

/// libnvrtc of CUDA_HOME, of the loader's folders, or of /usr/local/cuda. nullptr: there is none,
/// or this program is linked statically and loads no libraries.
std::unique_ptr<CubinCompiler> find_nvrtc();

/// libnvrtc in a file.
Result<std::unique_ptr<CubinCompiler>> open_nvrtc(const std::string& file);

}  // namespace mscclc
