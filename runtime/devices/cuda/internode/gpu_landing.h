// What lanes of other nodes bring for a GPU: bytes come into pinned memory, from which the GPU
// copies them; counts follow on the same stream.
#pragma once

#include <memory>

#include "runtime/devices/cuda/memory/memory.h"
#include "runtime/network/landing.h"

namespace mscclc::cuda {

/// nullptr: reported.
[[nodiscard]] std::unique_ptr<net::Landing> make_landing(const SharedContext& context,
                                                         Diagnostics& diagnostics);

}  // namespace mscclc::cuda
