#include "tools/measure/team_meeting.h"

#include <algorithm>

namespace mscclc {

bool TeamMeeting::all_well(uint32_t rank, bool here) {
  well_[rank] = here;
  meet();
  const bool well = std::ranges::count(well_, 0) == 0;
  meet();
  return well;
}

std::optional<double> TeamMeeting::time(uint32_t rank, const std::function<bool()>& work) {
  meet();
  begun_[rank] = Clock::now();
  const bool done = work();
  ended_[rank] = Clock::now();
  if (!all_well(rank, done)) return std::nullopt;
  const std::chrono::duration<double, std::nano> taken =
      *std::ranges::max_element(ended_) - *std::ranges::min_element(begun_);
  meet();  // all have read the times
  return taken.count();
}

}  // namespace mscclc
