// cuBLASLt, as this process finds it.
#pragma once

#include <string>

#include "ir/support/result.h"
#include "runtime/devices/cuda/gemm/cublaslt_abi.h"

namespace mscclc::cuda::lt {

/// Its functions. Thread safety: immutable.
struct Library {
#define FUNCTION(name, parameters) Status(*name) parameters = nullptr;
  MSCCLC_CUBLASLT(FUNCTION)
#undef FUNCTION
  const char* (*GetStatusString)(Status) = nullptr;
};

/// Looked for among what is loaded already, as by PyTorch; then where the loader looks; then in the
/// toolkit's folder. Stays loaded. The error says what was tried.
Result<Library> find_library();

}  // namespace mscclc::cuda::lt
