// Whether an image of kernels is a cubin with all its parts. The driver learns where an image
// begins, not how long it is: of a truncated one it would read what follows in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ir/support/result.h"

namespace mscclc::cuda {

/// What is wrong with it. Does not look at the machine code.
std::optional<Error> fault_of_cubin(std::span<const uint8_t> image);

}  // namespace mscclc::cuda
