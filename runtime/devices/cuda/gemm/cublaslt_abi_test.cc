// Our declarations of cuBLASLt's interface against NVIDIA's own. Everything is checked when this is
// compiled; it needs the CUDA headers but no GPU, and not the library.
#include "runtime/devices/cuda/gemm/cublaslt_abi.h"

#include <cublasLt.h>

#include <type_traits>

#include "runtime/devices/cuda/gemm/cublaslt_library.h"

namespace mscclc::cuda {
namespace {

/// Parameters that are passed in the same way.
template <class A, class B>
constexpr bool alike() {
  return std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
         std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}
template <class... A, class... B>
constexpr bool same_calls(int (*)(A...), cublasStatus_t (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  return (alike<A, B>() && ...);
}

#define FUNCTION(name, parameters) \
  static_assert(same_calls(decltype(lt::Library::name){nullptr}, cublasLt##name));
MSCCLC_CUBLASLT(FUNCTION)
#undef FUNCTION

static_assert(sizeof(lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(lt::Heuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));

#define SAME(ours, theirs) static_assert(static_cast<int>(lt::ours) == static_cast<int>(theirs))
SAME(kF32, CUDA_R_32F);
SAME(kF16, CUDA_R_16F);
SAME(kBf16, CUDA_R_16BF);
SAME(kE4m3, CUDA_R_8F_E4M3);
SAME(kE5m2, CUDA_R_8F_E5M2);
SAME(kCompute32f, CUBLAS_COMPUTE_32F);
SAME(kAsItLies, CUBLAS_OP_N);
SAME(kTransposed, CUBLAS_OP_T);
SAME(kPlain, CUBLASLT_EPILOGUE_DEFAULT);
SAME(kBias, CUBLASLT_EPILOGUE_BIAS);
SAME(kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(kMultiprocessors, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
SAME(kScaleA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(kScaleB, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SAME(kBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(kMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(kAlignA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(kAlignB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(kAlignC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(kAlignD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#undef SAME

}  // namespace
}  // namespace mscclc::cuda

int main() { return 0; }
