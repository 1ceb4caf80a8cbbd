// Locks of threads that do not sleep while something comes: to be woken would take longer than
// what others do under such a lock.
#pragma once

#include <mutex>

namespace mscclc::net {

/// Locks it. Asks for a while, as it is held for microseconds; then it sleeps.
[[nodiscard]] inline std::unique_lock<std::mutex> spin_lock(std::mutex& mutex) {
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) return lock;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return std::unique_lock(mutex);
}

}  // namespace mscclc::net
