// Products by cuBLASLt, which is loaded when it is first needed.
#pragma once

#include <memory>

#include "runtime/api/gemm.h"
#include "runtime/devices/cuda/driver/stream.h"

namespace mscclc::cuda {

/// Algorithms are chosen by its heuristic when a product is prepared. nullptr: reported, with what
/// was tried.
[[nodiscard]] std::unique_ptr<GemmProvider> make_cublaslt(SharedContext context,
                                                          Diagnostics& diagnostics);

}  // namespace mscclc::cuda
