// What a rank writes down when its communicator has failed: why, its last calls, and what its
// blocks waited for. As text for people and as JSON for `mscclc report`.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"
#include "runtime/support/observe/flight_recorder.h"

namespace mscclc {

inline constexpr int kFlightVersion = 1;

struct FlightLog {
  uint32_t rank = 0, size = 0;
  std::string host;
  int64_t process = 0;
  std::string time;          ///< when it was written, UTC
  std::string code, reason;  ///< of the failure
  uint64_t launched = 0;     ///< calls since the communicator was made; the last are in `calls`
  std::vector<FlightCall> calls;
  std::map<uint32_t, FlightPlan> plans;  ///< by executable
  std::vector<std::string> waits;        ///< the hang report, a line each
  std::set<uint32_t> awaited;            ///< ranks that blocks waited for
};

std::string flight_text(const FlightLog& log);
std::string flight_json(const FlightLog& log);

/// Writes both to new files: the pattern (expand_file_name(), with the rank) and .txt, .json; where
/// they exist, -2, -3, … and these. Returns the names without the end. A process writes kMaxLogs at
/// most; of those at the variable's default place, the newest are kept.
Result<std::string> write_flight_log(const FlightLog& log, std::string_view pattern);
inline constexpr int kMaxLogs = 16;

}  // namespace mscclc
