#include "runtime/doors/nccl/abi/types.h"

#include <algorithm>
#include <iterator>

#include "ir/support/precondition.h"

namespace mscclc::nccl {
namespace {

struct TypeRow {
  const char* name;
  ncclDataType_t value;
  Dtype ours;
};
struct ReductionRow {
  ncclRedOp_t value;
  ReduceOp ours;
};

constexpr TypeRow kTypeRows[] = {
#define TYPE(nccl, value, ours) {"nccl" #nccl, value, Dtype::ours},
#define REDUCTION(nccl, value, ours)
#include "runtime/doors/nccl/abi/types.def"
#undef TYPE
#undef REDUCTION
};
constexpr ReductionRow kReductionRows[] = {
#define TYPE(nccl, value, ours)
#define REDUCTION(nccl, value, ours) {value, ReduceOp::ours},
#include "runtime/doors/nccl/abi/types.def"
#undef TYPE
#undef REDUCTION
};
static_assert(std::size(kTypeRows) == kTypes);

const TypeRow& row_of(Dtype dtype) {
  return *std::find_if(std::begin(kTypeRows), std::end(kTypeRows),
                       [dtype](const TypeRow& row) { return row.ours == dtype; });
}

}  // namespace

std::optional<Dtype> dtype_of(ncclDataType_t type) {
  for (const TypeRow& row : kTypeRows) {
    if (row.value == type) return row.ours;
  }
  return std::nullopt;
}

ncclDataType_t nccl_type_of(Dtype dtype) { return row_of(dtype).value; }

const char* nccl_name_of(Dtype dtype) { return row_of(dtype).name; }

std::optional<ReduceOp> reduce_op_of(ncclRedOp_t op) {
  for (const ReductionRow& row : kReductionRows) {
    if (row.value == op) return row.ours;
  }
  return std::nullopt;
}

ncclRedOp_t nccl_op_of(ReduceOp op) {
  precondition(op != ReduceOp::call);
  return std::find_if(std::begin(kReductionRows), std::end(kReductionRows),
                      [op](const ReductionRow& row) { return row.ours == op; })
      ->value;
}

}  // namespace mscclc::nccl
