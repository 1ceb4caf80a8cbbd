// Threads of a block at most, as the registers of GPU kernels allow. A plan may ask for more: its
// blocks have fewer then, which the cost model counts with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/ops/ops.h"

namespace mscclc::device {

/// Of kernels that hold more than 64 registers a thread: those for packets, and those that run
/// every plan.
inline constexpr uint32_t kFewThreads = 512;

/// Of those that hold fewer.
inline constexpr uint32_t kManyThreads = 1024;

/// Of a fast kernel for plans of this format.
constexpr uint32_t threads_for(PacketFormat format) {
  return format == PacketFormat::none ? kManyThreads : kFewThreads;
}

/// Columns that a thread of a compiled kernel can hold of a row: kMaxRowChunk, for those who have
/// no kernels (executor/compiled/shape.cc compares them).
inline constexpr uint32_t kColumnsOfThread = 64;

/// Of the compiled kernel of a plan for so many ranks that applies row functions; `without`: if it
/// did not. All threads of a block share a row, and two vectors of 16 bytes a thread take far
/// longer than one; but sums of more than four sources in packets spill where there are many
/// threads (nvcc 13.0), so these have them only where fewer cannot hold a row.
constexpr uint32_t row_threads(size_t ranks, uint32_t columns, uint32_t without) {
  const bool many = ranks <= 4 || columns > uint64_t{kColumnsOfThread} * without;
  return many ? kManyThreads : without;
}

}  // namespace mscclc::device
