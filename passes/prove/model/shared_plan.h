// The plans of a set, which is proved together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

/// One of several plans whose calls follow one another, and what they share: the count of calls
/// (which packets are marked with, and copies of scratch are chosen by), channels, and scratch if
/// they say so (`launch reuse_scratch`).
struct SharedPlan {
  const Program* program = nullptr;
  std::string name;             ///< for messages
  std::vector<uint32_t> ranks;  ///< which ranks of the world its ranks are
};

}  // namespace mscclc
