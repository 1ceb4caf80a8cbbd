// The library itself: version, errors, settings.
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"

namespace mscclc::nccl::entry_points {
namespace {

/// Without an NCCL to fall back to: the version whose callers find all that they use.
constexpr int kVersionAlone = 22809;

}  // namespace

ncclResult_t GetVersion(int* version) {
  if (version == nullptr) return fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
  const RealNccl* const real = real_nccl();
  *version = real == nullptr ? kVersionAlone : real->version;
  return ncclSuccess;
}

const char* GetErrorString(ncclResult_t result) { return error_string(result); }
const char* GetLastError(ncclComm_t) { return last_error(); }
void ResetDebugInit() {
  read_debug_settings();
  const RealNccl* const real = real_nccl();
  const InsideReal inside;
  if (real != nullptr && real->ResetDebugInit != nullptr) real->ResetDebugInit();
}

}  // namespace mscclc::nccl::entry_points
