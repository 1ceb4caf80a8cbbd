// For tests: nothing stays open.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace mscclc::testing {

/// How many file descriptors this process has open.
inline size_t open_descriptors() {
  const std::filesystem::directory_iterator first("/proc/self/fd");
  return static_cast<size_t>(std::distance(first, std::filesystem::directory_iterator()));
}

}  // namespace mscclc::testing
