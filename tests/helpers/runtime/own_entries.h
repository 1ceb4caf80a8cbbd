// For tests: how much of a kind this process has, as /proc/self lists it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

namespace mscclc::testing {

/// How many entries the folder has.
inline size_t count_entries(const char* folder) {
  const std::filesystem::directory_iterator first(folder);
  return static_cast<size_t>(std::distance(first, std::filesystem::directory_iterator()));
}

/// Waits until it has no more than so many. False: it has, after a time far beyond what that takes.
inline bool entries_come_down_to(const char* folder, size_t most) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (count_entries(folder) > most) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace mscclc::testing
