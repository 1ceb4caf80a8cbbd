// The runtime's log, if MSCCLC_DEBUG asks for it: single lines, each written whole and at once, so
// that lines of several threads and processes do not mix.
//
//   host:4711:4713 [2] mscclc INFO LOAD 'ring': 4 ranks, up to 65536 bytes, executable 0
//
// Thread safety: all of it, from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/delivery.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {

enum class LogLevel : uint8_t { off, warn, info, trace };
/// Subsystems, as MSCCLC_DEBUG_SUBSYS names them.
enum class LogArea : uint8_t { init, bootstrap, env, load, reg, bind, call, proxy, select };

namespace log_detail {
/// The process's, as the variables are that decide it.
struct Logged {
  /// A bit for each subsystem that is logged at all, and for each that is logged at level trace.
  std::atomic<uint32_t> info_areas{0}, trace_areas{0};
  std::atomic<bool> warns{false};
};
}  // namespace log_detail

/// True if it is logged. Two loads, for places where asking must cost nothing. Warnings are logged
/// for all subsystems.
inline bool logs(LogLevel level, LogArea area) {
  const auto& logged = kept_over_forks<log_detail::Logged>();
  if (level == LogLevel::warn) return logged.warns.load(std::memory_order_relaxed);
  const auto& areas = level == LogLevel::trace ? logged.trace_areas : logged.info_areas;
  return (areas.load(std::memory_order_relaxed) >> static_cast<unsigned>(area) & 1) != 0;
}

/// Logs it, if it is to be logged.
void log(LogLevel level, LogArea area, std::optional<uint32_t> rank, std::string_view text);

/// Logs a warning whatever is to be logged: of a setting without effect its user knows nothing yet.
void log_always(LogArea area, std::optional<uint32_t> rank, std::string_view text);

/// Takes MSCCLC_DEBUG, _SUBSYS and _FILE; what the process has taken first stays. Errors
/// (bad-variable).
[[nodiscard]] bool start_log(const Environment& environment, Diagnostics& diagnostics);
/// Lines go to a sink (delivery.h) instead of the file or standard error; to an empty one: they go
/// there again. The sink before has had its lines, and is not called any more, when this returns;
/// until then it waits for that sink, unless that has called it. A process that ends gives its sink
/// a second for the lines that it has not had. Errors (no-thread).
[[nodiscard]] bool set_log_sink(LogSink sink, Diagnostics& diagnostics);
/// Forgets what start_log() has taken. For tests.
void reset_log();

}  // namespace mscclc
