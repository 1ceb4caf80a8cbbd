// Other libraries that overlapped GEMMs may use, as this process finds them; on processors only
// fakes beside an NCCL that MSCCLC_NCCL names.
#pragma once

#include "runtime/api/overlap.h"

namespace mscclc::capi {

OtherLibrary nccl_library(bool on_host);
/// cuBLASMp beside that NCCL.
OtherGemmLibrary cublasmp_library(bool on_host);

}  // namespace mscclc::capi
