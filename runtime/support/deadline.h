// Waiting for a descriptor until a point in time.
#pragma once

#include <chrono>

namespace mscclc {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Milliseconds from now until `deadline`, rounded up; 0 once it is over.
int left_ms(SteadyTime deadline);
/// Waits until `events` (of poll) or an error have come; false: the deadline has.
[[nodiscard]] bool await(int fd, short events, SteadyTime deadline);

}  // namespace mscclc
