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

/// REQUIRES, as nccl_name_of(): NCCL has such a type.
ncclDataType_t nccl_type_of(Dtype dtype);

/// "ncclFloat32".
const char* nccl_name_of(Dtype dtype);

/// nullopt: it is not a built-in reduction.
std::optional<ReduceOp> reduce_op_of(ncclRedOp_t op);

/// REQUIRES: NCCL has such a reduction.
ncclRedOp_t nccl_op_of(ReduceOp op);

}  // namespace mscclc::nccl
