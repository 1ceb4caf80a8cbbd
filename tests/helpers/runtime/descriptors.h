// For tests: nothing stays open.
#pragma once

#include <cstddef>

#include "tests/helpers/runtime/own_entries.h"

namespace mscclc::testing {

/// How many file descriptors this process has open.
inline size_t open_descriptors() { return count_entries("/proc/self/fd"); }

/// Waits until it has no more than so many: another thread may be about to close one. False: it
/// has, after a time far beyond what that takes.
inline bool descriptors_come_down_to(size_t most) {
  return entries_come_down_to("/proc/self/fd", most);
}

}  // namespace mscclc::testing
