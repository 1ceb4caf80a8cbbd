// What of cuBLASMp's interface (from version 0.8 on) GEMMs need, so that neither its header nor the
// library need be there when this is built. Names and values are those of NVIDIA's cublasmp.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/doors/nccl/abi/abi.h"

namespace mscclc::capi::mp {

using Status = int;
inline constexpr Status kSuccess = 0;

using Handle = struct Context *;
using Grid = struct GridOpaque *;
using Matrix = struct MatrixOpaque *;
using MatmulDesc = struct MatmulDescOpaque *;

/// cudaDataType_t, cublasComputeType_t, cublasOperation_t.
enum DataType : int32_t { kF32 = 0, kF16 = 2, kBf16 = 14, kE4m3 = 28, kE5m2 = 29 };
inline constexpr int kCompute32f = 68;
enum Operation : int32_t { kAsItLies = 0, kTransposed = 1 };
/// cublasMpGridLayout_t.
enum GridLayout : int32_t { kColumnMajor = 0, kRowMajor = 1 };
/// cublasMpMatmulEpilogue_t.
enum Epilogue : int32_t { kAllReduce = 1, kBias = 4 };
/// cublasMpMatmulDescriptorAttribute_t.
enum Attribute : int32_t {
  kTransposeA = 0,
  kTransposeB = 1,
  kCommunicationMultiprocessors = 4,
  kEpilogue = 5,
  kBiasPointer = 6,
  kBiasType = 8,
  kScaleA = 16,
  kScaleB = 18,
  kCommunicationType = 27
};

/// The arguments that cublasMpMatmul() and cublasMpMatmul_bufferSize() have in common.
#define MSCCLC_CUBLASMP_PRODUCT                                                             \
  Handle, MatmulDesc, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,    \
      int64_t ia, int64_t ja, Matrix, const void *b, int64_t ib, int64_t jb, Matrix,        \
      const void *beta, const void *c, int64_t ic, int64_t jc, Matrix, void *d, int64_t id, \
      int64_t jd, Matrix

/// FUNCTION(name, parameters), each cublasMp…, which returns a Status.
#define MSCCLC_CUBLASMP(FUNCTION)                                                               \
  FUNCTION(Create, (Handle *, void *stream))                                                    \
  FUNCTION(Destroy, (Handle))                                                                   \
  FUNCTION(SetStream, (Handle, void *stream))                                                   \
  FUNCTION(GridCreate, (int64_t rows, int64_t columns, int layout, ncclComm_t, Grid *))         \
  FUNCTION(GridDestroy, (Grid))                                                                 \
  FUNCTION(Malloc, (Grid, void **, size_t))                                                     \
  FUNCTION(Free, (Grid, void *))                                                                \
  FUNCTION(MatrixDescriptorCreate, (int64_t m, int64_t n, int64_t mb, int64_t nb, int64_t rsrc, \
                                    int64_t csrc, int64_t ld, int type, Grid, Matrix *))        \
  FUNCTION(MatrixDescriptorDestroy, (Matrix))                                                   \
  FUNCTION(MatmulDescriptorCreate, (MatmulDesc *, int compute))                                 \
  FUNCTION(MatmulDescriptorDestroy, (MatmulDesc))                                               \
  FUNCTION(MatmulDescriptorSetAttribute, (MatmulDesc, int, const void *, size_t))               \
  FUNCTION(Matmul_bufferSize, (MSCCLC_CUBLASMP_PRODUCT, size_t * device, size_t * host))        \
  FUNCTION(Matmul, (MSCCLC_CUBLASMP_PRODUCT, void *device, size_t, void *host, size_t))

}  // namespace mscclc::capi::mp
