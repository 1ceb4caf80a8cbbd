// Where plans that share scratch have their chunks.
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace mscclc {

/// If scratch of two plans begins at one place, does chunk lie on chunk at these ranks, whatever
/// the largest message? So it does if both declare the same chunks of input, output and scratch,
/// divide a message alike, and are laid out for the same largest message. Of a rank of each.
[[nodiscard]] bool same_scratch(const Program& a, uint32_t rank_a, const Program& b,
                                uint32_t rank_b);

}  // namespace mscclc
