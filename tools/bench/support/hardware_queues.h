// The hardware queues of a process on a GPU, which its streams share, for ranks that share a GPU.
// In a queue a copy may wait for a call that waits for that very copy. Under MPS each of several
// processes has fewer than alone.
#pragma once

#include <cstdlib>
#include <string>

namespace mscclc {

inline constexpr int kUsualQueues = 8;  ///< of a process without MPS
inline constexpr int kMaxQueues = 32;

/// Asks for so many, unless the caller of this process has. REQUIRES: nothing has used CUDA yet.
inline void ask_for_queues(int count) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(count).c_str(), 0);
}

}  // namespace mscclc
