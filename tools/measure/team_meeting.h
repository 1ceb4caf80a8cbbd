// Where ranks that are threads meet while they time something together: whether all is well, and
// how long it took from the first to begin to the last to end.
#pragma once

#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace mscclc {

/// Thread safety: each rank calls it on a thread of its own, and all make the same calls.
class TeamMeeting {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TeamMeeting(uint32_t ranks)
      : barrier_(static_cast<std::ptrdiff_t>(ranks)),
        well_(ranks, 1),
        begun_(ranks),
        ended_(ranks) {}

  /// Waits for all ranks.
  void meet() { barrier_.arrive_and_wait(); }
  /// Is all well on all ranks? All get the same answer.
  bool all_well(uint32_t rank, bool here);
  /// Nanoseconds of what all ranks begin now, from the first begin on any rank to the last end.
  /// nullopt on all ranks: `work` has returned false on one.
  std::optional<double> time(uint32_t rank, const std::function<bool()>& work);

 private:
  std::barrier<> barrier_;
  std::vector<uint8_t> well_;  ///< by rank, as what follows
  std::vector<Clock::time_point> begun_, ended_;
};

}  // namespace mscclc
