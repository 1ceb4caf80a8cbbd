// Random split programs that are right in structure and mean nothing: for tests that a plan keeps
// all of a program. Every op, channel kind, packet format and declaration occurs.
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace mscclc::testing {

Program random_plan(uint64_t seed);

}  // namespace mscclc::testing
