// What of cuBLASLt's interface (versions 12 and 13) products need, so that neither its headers nor
// the library need be there when this is built. Names and values are those of NVIDIA's cublasLt.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mscclc::cuda::lt {

using Status = int;
inline constexpr Status kSuccess = 0;

using Handle = struct Context*;
using MatmulDesc = struct MatmulDescOpaque*;
using Layout = struct LayoutOpaque*;
using Preference = struct PreferenceOpaque*;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

/// cudaDataType_t.
enum DataType : int { kF32 = 0, kF16 = 2, kBf16 = 14, kE4m3 = 28, kE5m2 = 29 };
inline constexpr int kCompute32f = 68;
enum Operation : int32_t { kAsItLies = 0, kTransposed = 1 };
enum Epilogue : uint32_t { kPlain = 1, kBias = 4 };

/// cublasLtMatmulDescAttributes_t.
enum DescAttribute : int {
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kMultiprocessors = 15,
  kScaleA = 17,
  kScaleB = 18,
  kBiasType = 26
};
/// cublasLtMatmulPreferenceAttributes_t.
enum PreferenceAttribute : int {
  kMaxWorkspace = 1,
  kAlignA = 5,
  kAlignB = 6,
  kAlignC = 7,
  kAlignD = 8
};

/// FUNCTION(name, parameters), each cublasLt…, which returns a Status.
#define MSCCLC_CUBLASLT(FUNCTION)                                                                \
  FUNCTION(Create, (Handle*))                                                                    \
  FUNCTION(Destroy, (Handle))                                                                    \
  FUNCTION(MatmulDescCreate, (MatmulDesc*, int compute, int scale))                              \
  FUNCTION(MatmulDescDestroy, (MatmulDesc))                                                      \
  FUNCTION(MatmulDescSetAttribute, (MatmulDesc, int, const void*, size_t))                       \
  FUNCTION(MatrixLayoutCreate, (Layout*, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
  FUNCTION(MatrixLayoutDestroy, (Layout))                                                        \
  FUNCTION(MatmulPreferenceCreate, (Preference*))                                                \
  FUNCTION(MatmulPreferenceDestroy, (Preference))                                                \
  FUNCTION(MatmulPreferenceSetAttribute, (Preference, int, const void*, size_t))                 \
  FUNCTION(MatmulAlgoGetHeuristic, (Handle, MatmulDesc, Layout a, Layout b, Layout c, Layout d,  \
                                    Preference, int wanted, Heuristic*, int* found))             \
  FUNCTION(Matmul, (Handle, MatmulDesc, const void* alpha, const void* a, Layout, const void* b, \
                    Layout, const void* beta, const void* c, Layout, void* d, Layout,            \
                    const Algorithm*, void* workspace, size_t, void* stream))

}  // namespace mscclc::cuda::lt
