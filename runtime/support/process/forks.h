// Whether this process is a child of fork(): it has none of the threads that what its parent made
// lives by.
#pragma once

#include <atomic>
#include <cstdint>

namespace mscclc {

/// forks(), once it has been called; nothing else changes it. A global, as what POSIX calls at a
/// fork takes no argument.
inline std::atomic<uint32_t> fork_count{0};

/// How many forks led from the first process that asked to this one. Kept with an object, the
/// number shows later whether the object was inherited. From any thread.
uint32_t forks();

/// The same, for callers that have called forks() before: costs a load.
inline uint32_t forks_so_far() { return fork_count.load(std::memory_order_relaxed); }

}  // namespace mscclc
