// NVIDIA's compiler, CUDA source to a cubin: libnvrtc, which comes with frameworks that have no
// nvcc, or nvcc as a process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

class CubinCompiler {
 public:
  virtual ~CubinCompiler() = default;
  /// Compiles the source of kernels (executor/compiled/emit.h) for `architecture` ("sm_90").
  /// The error has what the compiler says. Thread safety: any thread.
  virtual Result<std::string> compile(const std::string& source,
                                      const std::string& architecture) const = 0;
  /// Loads and makes what a first compilation would, and the process's end destroys. An error: it
  /// compiles nothing.
  virtual Result<void> prepare(const std::string& /*architecture*/) const { return {}; }
  /// The compiler and its version: "NVRTC 12.8". What it makes of a source is the same as long as
  /// this is.
  virtual const std::string& version() const = 0;
  /// Where it was found.
  virtual const std::string& file() const = 0;
};

/// nvcc of CUDA_HOME, of PATH, or of /usr/local/cuda. nullptr: there is none.
std::unique_ptr<CubinCompiler> find_nvcc();

/// The libnvrtc that MSCCLC_NVRTC names, or the first of nvrtc_places(). An error: there is none,
/// or this program is linked statically and loads no libraries.
Result<std::unique_ptr<CubinCompiler>> find_nvrtc(const Environment& environment);

/// True if MSCCLC_NVRTC names a file.
bool names_nvrtc(const Environment& environment);

/// What compiles while a job runs: NVRTC, or else nvcc. An error: there is neither, or the
/// file that MSCCLC_NVRTC names is no libnvrtc.
Result<std::unique_ptr<CubinCompiler>> find_compiler(const Environment& environment);

/// Where a libnvrtc may be, the best first: what the process has loaded, which fits its driver;
/// beside libraries of CUDA that it has loaded, and where PyTorch's wheels put it; the toolkit's.
/// `loaded`: paths of the process's libraries.
std::vector<std::string> nvrtc_places(std::span<const std::string> loaded,
                                      const std::string& cuda_home);

/// libnvrtc in a file.
Result<std::unique_ptr<CubinCompiler>> open_nvrtc(const std::string& file);

}  // namespace mscclc
