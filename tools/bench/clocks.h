// What a plan's blocks were doing when: stamps of the kernel (executor/cuda/clocks.h) as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mscclc::bench {

/// Of one call's rows, kClockWords words each: a line for each kind of block, by the stamps that it
/// has, with the median of their cycles since the block's begin. Rows without stamps are left out.
///
///   "#   64 blocks: program 410, ahead 1800, counts 2510, put_packets 2600, end 6100\n"
std::string clocks_text(std::span<const uint64_t> rows);

}  // namespace mscclc::bench
