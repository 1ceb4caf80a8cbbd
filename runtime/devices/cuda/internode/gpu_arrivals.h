// What lanes over verbs bring for a GPU: what a network device has written there is made visible by
// a read of its own, and what has come to staging memory is copied; then counts are set, by the
// processor or after copies by their stream.
#pragma once

#include <memory>

#include "runtime/devices/cuda/internode/gpu_counts.h"
#include "runtime/devices/cuda/internode/verbs_memory.h"
#include "runtime/network/verbs/arrivals.h"

namespace mscclc::cuda {

/// nullptr: reported.
[[nodiscard]] std::unique_ptr<verbs::Arrivals> make_arrivals(
    const SharedContext& context, std::shared_ptr<VerbsMemory> memory,
    std::shared_ptr<const GpuCounts> counts, Diagnostics& diagnostics);

}  // namespace mscclc::cuda
