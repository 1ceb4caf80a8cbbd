// What `mscclc report` makes of the calls that ranks have written down (MSCCLC_TRACE,
// runtime/support/observe/call_trace.h): which rank was late to which call, by how much.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "tools/report/clock_offsets.h"

namespace mscclc {

/// A rank's file.
struct RankCalls {
  struct TracedCall {
    std::string collective, dtype, op, plan;
    uint64_t bytes = 0, stream = 0;
    int64_t launched = 0;          ///< nanoseconds of the rank's clock
    std::optional<int64_t> ended;  ///< when the rank first knew
    bool operator==(const TracedCall& other) const = default;
  };
  std::string file, host, group;
  uint32_t rank = 0, size = 0;
  uint64_t launched = 0;
  ClockStays stays;
  /// By executable and number of the call.
  std::map<std::pair<uint32_t, uint64_t>, TracedCall> calls;
};

/// Is it a file of MSCCLC_TRACE, rather than one of a failure?
bool is_call_trace(std::string_view json);

/// Errors (not-a-trace).
[[nodiscard]] std::optional<RankCalls> read_calls(std::string_view json, const std::string& name,
                                                  Diagnostics& diagnostics);

/// One text for each communicator: how far clocks are apart, how late each rank came, and the calls
/// whose ranks came furthest apart. Errors (traces-differ): the same record twice, or ranks of
/// another size.
[[nodiscard]] std::optional<std::string> report_calls(std::vector<RankCalls> files,
                                                      Diagnostics& diagnostics);

/// The same calls in Chrome's trace event format, by the clock of each communicator's first rank: a
/// process a rank of a communicator, a track a stream, a slice a call. Communicators whose first
/// ranks are on one host begin together, others each at 0, as does a rank of an unknown clock.
std::string chrome_calls(const std::vector<RankCalls>& files);

}  // namespace mscclc
