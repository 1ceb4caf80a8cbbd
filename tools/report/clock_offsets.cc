#include "tools/report/clock_offsets.h"

#include <algorithm>
#include <limits>

namespace mscclc {

ClockOffset clock_offset(const ClockStays& reference, const ClockStays& clock, bool one_machine) {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  bool met = false;
  for (auto stay = clock.rbegin(); stay != clock.rend(); ++stay) {
    const auto other = reference.find(stay->first);
    if (other == reference.end()) continue;
    const int64_t below = std::min(most, stay->second.left - other->second.entered),
                  above = std::max(least, stay->second.entered - other->second.left);
    if (above > below) break;  // the clocks have drifted since
    met = true;
    most = below;
    least = above;
  }
  if (!met) return {};
  if (one_machine && least <= 0 && most >= 0) return {.known = true};
  return {
      .known = true, .ahead = least + (most - least) / 2, .give_or_take = (most - least + 1) / 2};
}

}  // namespace mscclc
