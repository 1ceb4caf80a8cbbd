// Other libraries that overlapped GEMMs may use, as this process finds them; on processors only
// fakes beside an NCCL that MSCCLC_NCCL names.
#pragma once

#include <memory>

#include "runtime/api/overlap.h"

namespace mscclc::capi {

class CublasMpHandle;
class NcclRanks;

/// What objects of one communicator share. Thread safety: the communicator's.
struct SharedLibraries {
  std::weak_ptr<NcclRanks> nccl;
  std::weak_ptr<CublasMpHandle> cublasmp;
};

/// `shared`: nullptr: objects share nothing.
OtherLibrary nccl_library(bool on_host, std::shared_ptr<SharedLibraries> shared);
/// cuBLASMp beside that NCCL. `shared`: nullptr where no object is made.
OtherGemmLibrary cublasmp_library(bool on_host, std::shared_ptr<SharedLibraries> shared);

}  // namespace mscclc::capi
