#include "runtime/support/deadline.h"

#include <poll.h>

#include <algorithm>
#include <climits>

namespace mscclc {

int left_ms(SteadyTime deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, INT_MAX));
}

bool await(int fd, short events, SteadyTime deadline) {
  pollfd polled{fd, events, 0};
  for (;;) {
    const int left = left_ms(deadline);
    if (::poll(&polled, 1, left) > 0) return true;  // otherwise: nothing yet, or EINTR
    if (left == 0) return false;
  }
}

}  // namespace mscclc
