// Which machine a process runs on.
#pragma once

#include <array>
#include <cstdint>

namespace mscclc {

/// Differs for every machine, and is one in all containers of it. All zeros where the system does
/// not say.
std::array<uint8_t, 36> this_machine();

}  // namespace mscclc
