#include "runtime/doors/c/gemm_callback.h"

#include <fmt/format.h>

namespace mscclc::capi {

bool GemmCallback::run(const Gemm& gemm, StreamHandle stream, Diagnostics& diagnostics) {
  const mscclc_gemm_t given = {.size = sizeof(mscclc_gemm_t),
                               .m = gemm.m,
                               .n = gemm.n,
                               .k = gemm.k,
                               .a = gemm.a,
                               .b = gemm.b,
                               .d = gemm.d,
                               .a_stride = gemm.a_stride,
                               .b_stride = gemm.b_stride,
                               .d_stride = gemm.d_stride,
                               .b_transposed = gemm.b_transposed ? 1 : 0,
                               .accumulate = gemm.accumulate ? 1 : 0,
                               .a_dtype = static_cast<mscclc_dtype_t>(gemm.a_dtype),
                               .b_dtype = static_cast<mscclc_dtype_t>(gemm.b_dtype),
                               .d_dtype = static_cast<mscclc_dtype_t>(gemm.d_dtype),
                               .multiprocessors = gemm.multiprocessors,
                               .a_scale = gemm.a_scale,
                               .b_scale = gemm.b_scale,
                               .bias = gemm.bias,
                               .workspace = gemm.workspace_bytes > 0 ? gemm.workspace : nullptr,
                               .workspace_bytes = gemm.workspace_bytes};
  const int result = function_(user_, &given, stream);
  if (result == 0) return true;
  diagnostics.error("gemm-failed", {},
                    fmt::format("the caller's function for products answered {} to m = {}, n = {}, "
                                "k = {}",
                                result, gemm.m, gemm.n, gemm.k));
  return false;
}

}  // namespace mscclc::capi
