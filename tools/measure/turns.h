// Several that are timed in turn, so that what disturbs the machine disturbs all of them alike: how
// often, and what is faster then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mscclc {

/// How often each is timed in turn: of many, the fastest was also lucky.
inline constexpr uint32_t kComparisons = 3;
/// What is faster than what would be taken without tuning by less is not.
inline constexpr double kGain = 0.02;

/// REQUIRES: there is one.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace mscclc
