// For tests: threads of this process, all of them and by their names.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "tests/helpers/runtime/own_entries.h"

namespace mscclc::testing {

/// How many threads this process has. One that has been joined may be among them for a moment
/// longer.
inline size_t running_threads() { return count_entries("/proc/self/task"); }

/// Waits until it has no more than so many. False: it has, long after the last was joined.
inline bool threads_come_down_to(size_t most) {
  return entries_come_down_to("/proc/self/task", most);
}

/// How many threads of this process have this name. Any thread.
inline size_t threads_named(std::string_view name) {
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string line;
    std::getline(std::ifstream(task.path() / "comm"), line);
    count += line == name ? 1 : 0;
  }
  return count;
}

/// Waits until none has it.
inline void await_end_of_threads(std::string_view name) {
  while (threads_named(name) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace mscclc::testing
