// A product of matrices before a collective: the example of docs/design/gpu.md for kernels that let
// the next call begin early.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace mscclc::examples {

/// c = a b, all in rows: a has m × k elements, b k × n, c m × n. REQUIRES: m, n and k are multiples
/// of 64.
struct Gemm {
  const float* a;
  const float* b;
  float* c;
  uint32_t m, n, k;
};

/// Starts it. `early`: it may itself begin before the previous launch has ended.
cudaError_t launch_gemm(const Gemm& gemm, bool early, cudaStream_t stream);

}  // namespace mscclc::examples
