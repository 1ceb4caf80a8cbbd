// A caller's function that makes products, as a provider of the runtime's.
#pragma once

#include "runtime/api/gemm.h"
#include "runtime/doors/c/mscclc.h"

namespace mscclc::capi {

class GemmCallback final : public GemmProvider {
 public:
  GemmCallback(mscclc_gemm_fn function, void* user, uint64_t workspace_bytes)
      : function_(function), user_(user), workspace_bytes_(workspace_bytes) {}
  uint64_t workspace_bytes() const override { return workspace_bytes_; }
  bool run(const Gemm& gemm, StreamHandle stream, Diagnostics& diagnostics) override;

 private:
  const mscclc_gemm_fn function_;
  void* const user_;
  const uint64_t workspace_bytes_;
};

}  // namespace mscclc::capi
