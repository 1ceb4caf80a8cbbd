// What a plan's blocks were doing when: the kernel's stamps (executor/stamps.h) as
// text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mscclc::bench {

inline constexpr uint32_t kMaxClockBlocks = 1024;
inline constexpr uint32_t kClockWords = 48;  ///< of a row; later stamps are left out

/// Of one call's rows, kClockWords words each: a line for each kind of block, by the stamps that it
/// has, with the median of their cycles since the block's begin, and how far they are apart. Rows
/// without stamps are left out.
///
///   "#   64 blocks: program 410, ahead 1800, put_packets 2600, end 6100 (5900 to 7020)\n"
std::string clocks_text(std::span<const uint64_t> rows);

}  // namespace mscclc::bench
