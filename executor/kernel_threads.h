// Threads of a block at most, as the registers of GPU kernels allow. A plan may ask for more: its
// blocks have fewer then, which the cost model counts with.
#pragma once

#include <cstdint>

#include "ir/ops/ops.h"

namespace mscclc::device {

/// Of kernels that hold more than 64 registers a thread: those for packets, and those that run
/// every plan.
inline constexpr uint32_t kFewThreads = 512;

/// Of a fast kernel for plans of this format.
constexpr uint32_t threads_for(PacketFormat format) {
  return format == PacketFormat::none ? 1024 : kFewThreads;
}

}  // namespace mscclc::device
