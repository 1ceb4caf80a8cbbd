// The longest chain of steps and messages through a call: what would have to be faster for the call
// to be faster.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "executor/cost/timeline.h"

namespace mscclc::cost {

/// A stretch of the path: what a step, or a message to it, took.
struct PathPart {
  Cause cause = Cause::launch;
  double begin = 0, end = 0;    ///< nanoseconds since the launch
  uint32_t record = kNoRecord;  ///< the step; none: the launch
};

/// The parts from the launch to the end of the first call, without gaps. Parts that follow one
/// another and have the same cause and step are one.
std::vector<PathPart> critical_path(const Timeline& timeline);

/// Nanoseconds of the path by cause.
std::array<double, kCauses> shares(const std::vector<PathPart>& path);

}  // namespace mscclc::cost
