// Which machine a process runs on, and what it has.
#pragma once

#include <array>
#include <cstdint>

namespace mscclc {

/// Differs for every machine, and is one in all containers of it. All zeros where the system does
/// not say.
std::array<uint8_t, 36> this_machine();
/// Its memory, in bytes, without swap.
uint64_t memory_of_machine();

}  // namespace mscclc
