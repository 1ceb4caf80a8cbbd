// What the machine has.
#pragma once

#include <cstdint>

namespace mscclc {

/// The machine's memory, in bytes, without swap.
uint64_t memory_of_machine();

}  // namespace mscclc
