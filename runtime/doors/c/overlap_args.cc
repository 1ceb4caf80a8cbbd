#include "runtime/doors/c/overlap_args.h"

#include <fmt/format.h>

#include "runtime/doors/c/orders.h"

namespace mscclc::capi {
namespace {

static_assert(MSCCLC_ALLGATHER_GEMM == static_cast<int>(OverlapKind::allgather_gemm) &&
              MSCCLC_GEMM_REDUCESCATTER == static_cast<int>(OverlapKind::gemm_reducescatter) &&
              MSCCLC_GEMM_ALLREDUCE == static_cast<int>(OverlapKind::gemm_allreduce) &&
              MSCCLC_ALLTOALL_GEMM == static_cast<int>(OverlapKind::alltoall_gemm));

constexpr uint32_t kMaxWeights = 64;

bool is_type(mscclc_dtype_t dtype) {
  return dtype >= 0 && dtype < static_cast<int32_t>(dtype_table().size());
}

template <class T>
std::vector<T> vector_of(T const* given, uint32_t count) {
  return given == nullptr ? std::vector<T>() : std::vector<T>(given, given + count);
}

}  // namespace

Result<OverlapConfig> config_of(const mscclc_overlap_config_t& given) {
  for (const auto& [name, dtype] :
       {std::pair{"a_dtype", given.a_dtype}, std::pair{"b_dtype", given.b_dtype},
        std::pair{"out_dtype", given.out_dtype}}) {
    if (!is_type(dtype)) return Error{fmt::format("'{}' is {}, which is no type", name, dtype)};
  }
  if (given.weights == 0 || given.weights > kMaxWeights) {
    return Error{fmt::format("'weights' must be 1 to {}; it is {}", kMaxWeights, given.weights)};
  }
  if (given.n == nullptr) return Error{"'n' is NULL"};
  if (!is_order(given.order))
    return Error{fmt::format("'order' is {}, which is none", given.order)};
  if (given.kind < MSCCLC_ALLGATHER_GEMM || given.kind > MSCCLC_ALLTOALL_GEMM) {
    return Error{fmt::format("'kind' must be 1 to 4; it is {}", given.kind)};
  }
  if (given.activation != MSCCLC_NO_ACTIVATION && given.activation != MSCCLC_GELU) {
    return Error{fmt::format("'activation' must be 0 or 1; it is {}", given.activation)};
  }
  return OverlapConfig{.kind = static_cast<OverlapKind>(given.kind),
                       .m = given.m,
                       .k = given.k,
                       .n = vector_of(given.n, given.weights),
                       .b_transposed = given.b_transposed != 0,
                       .a_dtype = static_cast<Dtype>(given.a_dtype),
                       .b_dtype = static_cast<Dtype>(given.b_dtype),
                       .out_dtype = static_cast<Dtype>(given.out_dtype),
                       .order = order_of(given.order),
                       .bias = given.bias != 0,
                       .activation = static_cast<Activation>(given.activation),
                       .backend = given.backend == nullptr ? "auto" : given.backend,
                       .chunks = given.chunks,
                       .budget = given.budget,
                       .own_workspace = given.caller_workspace == 0,
                       .agreed = given.agreed == nullptr ? "" : given.agreed};
}

Result<OverlapCall> overlap_call_of(const mscclc_overlap_call_t& given, uint32_t weights) {
  if (given.b == nullptr || given.out == nullptr) return Error{"'b' or 'out' of the call is NULL"};
  return OverlapCall{.a = given.a,
                     .b = vector_of(given.b, weights),
                     .out = vector_of(given.out, weights),
                     .bias = vector_of(given.bias, weights),
                     .pre_activation = vector_of(given.pre_activation, weights),
                     .a_scale = given.a_scale,
                     .b_scale = vector_of(given.b_scale, weights),
                     .gathered = given.gathered,
                     .workspace = given.workspace,
                     .workspace_bytes = given.workspace_bytes};
}

}  // namespace mscclc::capi
