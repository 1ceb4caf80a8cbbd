// What stands around a call in a user's program: a kernel ahead that writes its input, and one
// after it that reads its output (--between, --between-early).
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "ir/diagnostics/diagnostic.h"
#include "tools/bench/kernels/kernels.h"
#include "tools/bench/measure/contender.h"
#include "tools/bench/support/options.h"

namespace mscclc::bench {

class Surroundings {
 public:
  /// Of calls of rank `rank`, as `options` say. Nothing: reported.
  static std::optional<Surroundings> of(const Workload& workload, uint32_t rank,
                                        const Options& options, Diagnostics& diagnostics);

  /// `early`: by kernels that let the next launch begin early.
  bool launch_before(cudaStream_t stream, bool early, Diagnostics& diagnostics) const;
  bool launch_after(cudaStream_t stream, bool early, Diagnostics& diagnostics) const;

 private:
  BusyKernel before_, after_;
};

}  // namespace mscclc::bench
