// Whether an image of kernels is a cubin with all its parts. The driver is told where an image
// lies, not how long it is: of one that is cut off it would read what lies behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mscclc::cuda {

/// "" if it is; else what is wrong with it. Does not look at the machine code.
std::string fault_of_cubin(std::span<const uint8_t> image);

}  // namespace mscclc::cuda
