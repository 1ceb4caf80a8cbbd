/* NCCL's binary interface in declarations of our own, so that nothing of NCCL is needed to build a
 * library that replaces it. C11 and C++. Enumerations have NCCL's values; structs that only go
 * through us to NCCL are opaque. */
#ifndef MSCCLC_RUNTIME_NCCL_ABI_H_
#define MSCCLC_RUNTIME_NCCL_ABI_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8,
  ncclResultMost = 0x7fffffff, /* other versions have others: any of these may come */
} ncclResult_t;

/* Callers may pass any int; types.def lists the types and reductions that there are. */
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef int ncclScalarResidence_t;
typedef int ncclCommMemStat_t;
typedef int ncclCftTeamMode_t;

enum {
  kNcclNumOps = 5,              /* the least value of a reduction that was made at run time */
  kNcclScalarDevice = 0,        /* ncclScalarResidence_t: read when the call runs */
  kNcclScalarHostImmediate = 1, /* copied when the reduction is made */
  kNcclSplitNoColor = -1,
  kNcclShrinkAbort = 1,
  kNcclWinCollSymmetric = 1,
  kNcclUndefinedInt = INT_MIN
};
#define MSCCLC_NCCL_MAGIC 0xcafebeefu          /* of ncclConfig_t */
#define MSCCLC_NCCL_SIM_INFO_MAGIC 0x74685283u /* of ncclSimInfo_t */

typedef struct {
  char internal[128];
} ncclUniqueId;
typedef struct {
  int nRanks, rank, stride;
} ncclTeam_t;
typedef struct {
  void* mcBasePtr;
} ncclMultimemHandle_t;
typedef struct {
  size_t size;
  unsigned int magic, version;
  float estimatedTime;
} ncclSimInfo_t;

/* ncclSetEncryption() (2.32); callers of later versions may pass a longer one. */
typedef struct ncclEncryptionConfig {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;
  const char* psk;
} ncclEncryptionConfig_t;

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef struct ncclParamHandle* ncclParamHandle_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;

/* Their sizes depend on the caller's version: config.h reads the first, NCCL all others. */
typedef struct ncclConfig ncclConfig_t;
typedef struct ncclCollConfig ncclCollConfig_t;
typedef struct ncclCommProperties ncclCommProperties_t;
typedef struct ncclWaitSignalDesc ncclWaitSignalDesc_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle_t;
typedef struct ncclGinOutboxHandle ncclGinOutboxHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;
typedef struct ncclCftLe ncclCftLeId;

#endif /* MSCCLC_RUNTIME_NCCL_ABI_H_ */
