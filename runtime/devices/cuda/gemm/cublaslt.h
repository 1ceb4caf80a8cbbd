// Products by cuBLASLt, which is loaded when it is first needed.
#pragma once

#include <memory>

#include "runtime/api/gemm.h"
#include "runtime/devices/cuda/driver/stream.h"

namespace mscclc::cuda {

/// Algorithms are chosen by its heuristic when a product is prepared. All of a context share one
/// handle. nullptr: reported, with what was tried. Thread safety: from any thread; what is made is
/// for one at a time.
[[nodiscard]] std::unique_ptr<GemmProvider> make_cublaslt(SharedContext context,
                                                          Diagnostics& diagnostics);

}  // namespace mscclc::cuda
