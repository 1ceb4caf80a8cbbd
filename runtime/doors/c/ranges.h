// Ranges that profilers show of the C interface's functions, by NVTX.
#pragma once

#include "runtime/support/observe/nvtx.h"

namespace mscclc::capi {

/// Of a function, while it lives. `function` is a literal; `bytes`: of its message.
NvtxRange range_of(const char* function, std::optional<uint64_t> bytes = std::nullopt);

}  // namespace mscclc::capi
