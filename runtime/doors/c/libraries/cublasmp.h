// cuBLASMp, as this process finds it.
#pragma once

#include <string>

#include "ir/support/result.h"
#include "runtime/doors/c/libraries/cublasmp_abi.h"
#include "runtime/doors/nccl/backends/real.h"

namespace mscclc::capi::mp {

/// Its functions. Thread safety: immutable.
struct Library {
#define FUNCTION(name, parameters) Status(*name) parameters = nullptr;
  MSCCLC_CUBLASMP(FUNCTION)
#undef FUNCTION
  const char* (*GetStatusString)(Status) = nullptr;
};

/// Looked for beside NCCL's file, in the wheels' folder beside NCCL's wheel, then where the loader
/// looks. It has to call this very NCCL. Stays loaded. The error says what was tried.
Result<Library> find_library(const nccl::RealNccl& nccl);
/// Why the first run beside this NCCL cannot be captured; "": it can.
std::string why_first_uncaptured(const nccl::RealNccl& nccl);

}  // namespace mscclc::capi::mp
