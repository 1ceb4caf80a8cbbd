// Structural check of a program: ids in range, operand shapes as the op table says, chunks inside
// their buffers, channels that fit the op, partners that name each other. Says nothing about what
// the program computes. Runs after reading a plan, after every pass under --verify-each.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

/// Reports every structural fault. Returns true if there is none.
[[nodiscard]] bool verify_structure(const Program& program, Diagnostics& diagnostics);

}  // namespace mscclc
