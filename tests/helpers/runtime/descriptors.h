// For tests: nothing stays open.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

namespace mscclc::testing {

/// How many file descriptors this process has open.
inline size_t open_descriptors() {
  const std::filesystem::directory_iterator first("/proc/self/fd");
  return static_cast<size_t>(std::distance(first, std::filesystem::directory_iterator()));
}

/// Waits until it has no more than so many: another thread may be about to close one. False: it
/// has, after a time far beyond what that takes.
inline bool descriptors_come_down_to(size_t most) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (open_descriptors() > most) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace mscclc::testing
