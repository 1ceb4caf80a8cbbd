// What a rank keeps of its calls for those who look into a hang, or at a timeline.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/support/observe/clock_marks.h"
#include "runtime/support/observe/flight_recorder.h"

namespace mscclc {

/// The names of plans that were loaded, by the numbers of their loads. Thread safety: from any
/// thread.
class PlanNames {
 public:
  void add(uint32_t load, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_[load] = name;
  }
  /// "": none has this number.
  std::string find(uint32_t load) const {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(load);
    return found == names_.end() ? "" : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::string> names_;
};

/// MSCCLC_FLIGHT_FILE: nothing is to be written.
inline constexpr std::string_view kNoFlightFile = "none";

struct CallRecords {
  FlightRecorder recorder;
  uint32_t loads = 0;  ///< LoadedPlan::number of the last
  PlanNames plan_names;
  std::string flight_file;  ///< MSCCLC_FLIGHT_FILE
  std::string trace_file;   ///< MSCCLC_TRACE; "": nothing is to be written
  ClockMarks marks;         ///< of exchanges
  uint64_t digest = 0;  ///< of the first exchange's messages: no two communicators have the same
};

}  // namespace mscclc
