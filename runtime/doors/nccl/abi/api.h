/* The functions of libnccl.so.2, each as nccl* and as pncclX, declared from api.def. C11 and C++.
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

#ifdef __cplusplus
}
#endif

#endif /* MSCCLC_RUNTIME_NCCL_API_H_ */
