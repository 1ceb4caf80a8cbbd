// Ranges that profilers show of NCCL's functions, by NVTX.
#pragma once

#include "runtime/support/observe/nvtx.h"

namespace mscclc::nccl::entry_points {

/// Of a function, while it lives; NCCL_NVTX_DISABLE turns it off. `function` is a literal; `bytes`:
/// of its message.
NvtxRange range_of(const char* function, std::optional<uint64_t> bytes = std::nullopt);

}  // namespace mscclc::nccl::entry_points
