// The calls of a rank as it leaves its communicator, for MSCCLC_TRACE: JSON that `mscclc report`
// joins over ranks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"
#include "runtime/support/observe/clock_marks.h"
#include "runtime/support/observe/flight_recorder.h"

namespace mscclc {

inline constexpr int kTraceVersion = 1;

struct CallTrace {
  uint32_t rank = 0, size = 0;
  uint64_t group = 0;  ///< digest_of() what all ranks exchanged first: the same in one communicator
  std::string host;
  int64_t process = 0;
  uint64_t launched = 0;          ///< calls in all; the last are in `calls`
  std::vector<FlightCall> calls;  ///< times of the steady clock
  std::map<uint32_t, FlightPlan> plans;
  std::vector<ClockMark> marks;
};

/// The same number for the same messages of all ranks.
uint64_t digest_of(std::span<const std::vector<uint8_t>> messages);

std::string call_trace_json(const CallTrace& trace);

/// Writes it to a new file: the pattern (expand_file_name(), with the rank) and .json, or -2.json,
/// … where that exists. Returns its name.
Result<std::string> write_call_trace(const CallTrace& trace, std::string_view pattern);

}  // namespace mscclc
