// NCCL's data types and reductions as ours, from types.def.
#pragma once

#include <optional>

#include "ir/ops/dtypes.h"
#include "runtime/doors/nccl/abi/abi.h"

namespace mscclc::nccl {

/// Types that NCCL has: values below it.
inline constexpr int kTypes = 12;

/// nullopt: there is no such type.
std::optional<Dtype> dtype_of(ncclDataType_t type);

/// "ncclFloat32"; "" if there is no such type.
const char* nccl_name_of(ncclDataType_t type);

/// nullopt: it is not a built-in reduction.
std::optional<ReduceOp> reduce_op_of(ncclRedOp_t op);

}  // namespace mscclc::nccl
