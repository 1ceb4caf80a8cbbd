// How long something took on the host.
#pragma once

#include <chrono>

namespace mscclc::bench {

using Clock = std::chrono::steady_clock;

inline double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace mscclc::bench
