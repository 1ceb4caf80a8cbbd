// What `mscclc report` makes of the files that ranks have written when they failed
// (runtime/support/observe/flight_file.h): one story of all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// A rank's file, as far as the report needs it.
struct RankFlight {
  struct FlightCall {
    std::string collective, dtype, op, plan;
    uint64_t bytes = 0;
    bool ended = false;
    bool operator==(const FlightCall& other) const {  // whether it has ended may differ
      return collective == other.collective && dtype == other.dtype && op == other.op &&
             bytes == other.bytes;
    }
  };
  /// An executable's calls that the file has, by number, from 1.
  using Calls = std::map<uint64_t, FlightCall>;

  std::string file, host, code, reason;
  uint32_t rank = 0, size = 0;
  uint64_t launched = 0;
  std::map<uint32_t, Calls> executables;
  std::vector<std::string> waits;
  std::vector<uint32_t> awaited;
};

/// Errors (not-a-flight).
[[nodiscard]] std::optional<RankFlight> read_flight(std::string_view json, const std::string& name,
                                                    Diagnostics& diagnostics);

/// Says of all ranks why they ended, which fell behind, where calls differ, and which rank waits
/// for which. Errors (flights-differ): files of different jobs, or two of a rank.
[[nodiscard]] std::optional<std::string> report_flights(std::vector<RankFlight> ranks,
                                                        Diagnostics& diagnostics);

}  // namespace mscclc
