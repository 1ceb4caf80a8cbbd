// Learning that a graph is gone: what its launches read may then be used for something else.
#pragma once

#include <functional>

#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

/// Calls `gone` once when the graph that a stream is being captured into, all that was instantiated
/// from it, and all launches of these have ended: by a user object, which the graph owns (CUDA
/// Programming Guide, "CUDA User Objects"). It comes from any thread, and must call nothing of
/// CUDA, wait for nothing and throw nothing. False: the driver does not take it, and `gone` is
/// never called. REQUIRES: the context is current.
[[nodiscard]] bool at_end_of_graph(const PrimaryContext& context, abi::Stream stream,
                                   std::function<void()> gone);

}  // namespace mscclc::cuda
