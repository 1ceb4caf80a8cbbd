#include "tools/report/clock_offsets.h"

#include <algorithm>
#include <limits>

namespace mscclc {

ClockOffset clock_offset(const ClockStays& reference, const ClockStays& clock, bool one_machine) {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  bool met = false;
  for (const auto& [number, stay] : clock) {
    const auto other = reference.find(number);
    if (other == reference.end()) continue;
    met = true;
    most = std::min(most, stay.left - other->second.entered);
    least = std::max(least, stay.entered - other->second.left);
  }
  if (!met || least > most) return {};
  if (one_machine && least <= 0 && most >= 0) return {.known = true};
  return {
      .known = true, .ahead = least + (most - least) / 2, .give_or_take = (most - least + 1) / 2};
}

}  // namespace mscclc
