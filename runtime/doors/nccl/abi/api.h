/* The functions of libnccl.so.2, each as nccl* and as pncclX, declared from api.def; and one of our
 * own. C11 and C++.
 */
#ifndef MSCCLC_RUNTIME_NCCL_API_H_
#define MSCCLC_RUNTIME_NCCL_API_H_

#include "runtime/doors/nccl/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define API(since, how, result, name, parameters, arguments) \
  result nccl##name parameters;                              \
  result pnccl##name parameters;
#include "runtime/doors/nccl/abi/api.def"
#undef API

/* What the sums of a communicator's calls that are asked for from now on keep to (docs/bits.md):
 * "ranks", say; NULL: what MSCCLC_ORDER says. The same on all ranks, between the same calls. Local;
 * from any thread. ncclInvalidArgument: there is no such order, or no such communicator. A call's
 * own ncclCollConfig_t comes before it: an ncclConfigExt_t of vendorId 0x6d7363 and optionId 1 in
 * its list, whose val.s is the name. */
ncclResult_t mscclc_nccl_order(ncclComm_t comm, const char* order);

#ifdef __cplusplus
}
#endif

#endif /* MSCCLC_RUNTIME_NCCL_API_H_ */
