// The library itself: version, errors, settings.
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"

namespace mscclc::nccl::entry_points {
namespace {

/// Without an NCCL to fall back to: the version whose callers find all that they use.
constexpr int kVersionAlone = 22809;
constexpr int kNoEncryption = 0;  ///< ncclEncryptionConfig_t::mode

}  // namespace

ncclResult_t GetVersion(int* version) {
  if (version == nullptr) return fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
  const RealNccl* const real = real_nccl();
  *version = real == nullptr ? kVersionAlone : real->version;
  return ncclSuccess;
}

// Sockets of plans, and those over which ranks meet, are not encrypted. NCCL, too, fails rather
// than send in the clear what was to be encrypted.
ncclResult_t SetEncryption(const ncclEncryptionConfig_t* config) {
  const RealNccl* const real = real_nccl();
  if (config != nullptr && config->magic != MSCCLC_NCCL_MAGIC) {
    return fail(ncclInvalidArgument,
                "ncclSetEncryption: config was not made with NCCL_ENCRYPTION_CONFIG_INITIALIZER");
  }
  if (config != nullptr && config->mode != kNoEncryption) {
    return fail(ncclInvalidUsage,
                "ncclSetEncryption: mscclc does not encrypt its sockets; run this program with "
                "NVIDIA's library alone, or over a network that need not be encrypted");
  }
  if (real == nullptr || real->SetEncryption == nullptr) return ncclSuccess;
  const InsideReal inside;
  return real->SetEncryption(config);
}

const char* GetErrorString(ncclResult_t result) { return error_string(result); }
const char* GetLastError(ncclComm_t) { return ThreadGroup::of_thread().keep(last_error()); }
void ResetDebugInit() {
  read_debug_settings();
  const RealNccl* const real = real_nccl();
  const InsideReal inside;
  if (real != nullptr && real->ResetDebugInit != nullptr) real->ResetDebugInit();
}

}  // namespace mscclc::nccl::entry_points
