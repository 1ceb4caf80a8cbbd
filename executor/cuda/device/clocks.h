// Stamps of all calls (executor/stamps.h), for the benchmark: of where a block's time goes.
#pragma once

#include <cstdint>

#include "executor/stamps.h"

namespace mscclc::cuda {

inline constexpr uint32_t kMaxClockBlocks = 1024;
inline constexpr uint32_t kClockWords = 48;  ///< of a row; later stamps are left out

/// Calls of so many blocks at most that are launched or captured from now on write their rows to
/// device memory, kClockWords × kMaxClockBlocks words, unless the launch names a place of its own;
/// nullptr: nowhere.
void set_clocks(uint64_t* rows);

}  // namespace mscclc::cuda
