// The functions of api.def that we answer ourselves, and that of our own.
#pragma once

#include "runtime/doors/nccl/abi/abi.h"

namespace mscclc::nccl::entry_points {

#define NCCL_FUNCTION_own(result, name, parameters) result name parameters;
#define NCCL_FUNCTION_comm(result, name, parameters)
#define NCCL_FUNCTION_queue(result, name, parameters)
#define NCCL_FUNCTION_pass(result, name, parameters)
#define API(since, how, result, name, parameters, arguments) \
  NCCL_FUNCTION_##how(result, name, parameters)
#include "runtime/doors/nccl/abi/api.def"
#undef API
#undef NCCL_FUNCTION_own
#undef NCCL_FUNCTION_comm
#undef NCCL_FUNCTION_queue
#undef NCCL_FUNCTION_pass

/// mscclc_nccl_order().
ncclResult_t order(ncclComm_t comm, const char* order);

}  // namespace mscclc::nccl::entry_points
