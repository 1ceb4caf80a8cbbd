// Proved programs on the engines of GPUs, which do the parts of an op, and of neighbouring ops that
// are one step there, in orders of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program/program.h"

namespace mscclc::random_programs {

/// What differs from the simulator in some runs on the engines, several calls in a row; nothing if
/// all goes well.
std::optional<std::string> fault_on_engines(const Program& program, uint64_t number, uint32_t runs);

}  // namespace mscclc::random_programs
