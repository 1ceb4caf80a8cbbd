// Products of matrices on processors: plain loops, added up in f32 in the order of k. A row of the
// result depends on nothing but its row of a, so rows can be made in any pieces with the same bits.
#pragma once

#include "runtime/api/gemm.h"

namespace mscclc {

/// What a processor takes of types: f32, f16, bf16, e4m3 and e5m2 as operands, the first three as
/// results. False: reported (bad-call), with the type.
[[nodiscard]] bool check_cpu_gemm(const Gemm& gemm, Diagnostics& diagnostics);

/// Makes the product. REQUIRES: check_cpu_gemm().
void cpu_gemm(const Gemm& gemm);

/// Adds a bias to rows. REQUIRES: f32, f16 or bf16.
void cpu_add_parts(const PartSum& sum);

/// The same as a provider.
class CpuGemmProvider final : public GemmProvider {
 public:
  bool prepare(const Gemm& gemm, Diagnostics& diagnostics) override {
    return check_cpu_gemm(gemm, diagnostics);
  }
  bool run(const Gemm& gemm, StreamHandle, Diagnostics& diagnostics) override {
    if (!check_cpu_gemm(gemm, diagnostics)) return false;
    cpu_gemm(gemm);
    return true;
  }
};

}  // namespace mscclc
