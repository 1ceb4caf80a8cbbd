#include "runtime/support/observe/flight_file.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "ir/diagnostics/printable.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/fd.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/new_file.h"
#include "runtime/support/observe/old_files.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

constexpr int kMaxNames = 100;
/// Where the user has not said where, as many files stay: two of each rank, of the newest failures.
constexpr size_t kMaxKept = 1024;

/// Of this process.
struct Written {
  std::atomic<int> logs{0};
};

/// The default of MSCCLC_FLIGHT_FILE, divided.
std::pair<std::string, std::string> default_place() {
  const std::string pattern(info(Variable::MSCCLC_FLIGHT_FILE).fallback);
  const size_t slash = pattern.rfind('/');
  return {pattern.substr(0, slash), pattern.substr(slash + 1, pattern.find('%') - slash - 1)};
}

/// In the user's own folders nothing is removed.
void drop_old_logs(std::string_view pattern) {
  if (pattern != info(Variable::MSCCLC_FLIGHT_FILE).fallback) return;
  const auto [folder, begin] = default_place();
  const std::string own = begin + host_name() + "-";
  const auto is_log = [&](std::string_view name) {
    if (!name.starts_with(own)) return false;
    if (!name.ends_with(".json") && !name.ends_with(".txt")) return false;
    const std::string_view numbers = name.substr(own.size(), name.rfind('.') - own.size());
    return !numbers.empty() && numbers.find_first_not_of("0123456789-") == numbers.npos;
  };
  drop_old_files(folder, is_log, kMaxKept);
}

FlightPlan plan_of(const FlightLog& log, uint32_t executable) {
  const auto found = log.plans.find(executable);
  return found == log.plans.end() ? FlightPlan{} : found->second;
}

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

/// Times count from the first call that is kept.
int64_t origin(const FlightLog& log) { return log.calls.empty() ? 0 : log.calls.front().launched; }

}  // namespace

std::string flight_text(const FlightLog& log) {
  std::string out =
      fmt::format("rank {} of {}, process {} on {}, {}\n{}: {}\n", log.rank, log.size, log.process,
                  log.host, log.time, log.code, printable_line(log.reason));
  out += fmt::format("\nwaits ({}):\n", log.waits.size());
  for (const std::string& wait : log.waits) out += "  " + printable_line(wait) + "\n";
  out += fmt::format(
      "\ncalls (the last {} of {}):\n"
      "  {:>8} {:>10} {:>6} {:<13} {:>12} {:<8} {:<5} {:>18} {:>14} {:>14}  {}\n",
      log.calls.size(), log.launched, "number", "executable", "call", "collective", "bytes", "type",
      "redop", "stream", "launched (us)", "ended (us)", "plan");
  for (const FlightCall& call : log.calls) {
    const FlightPlan plan = plan_of(log, call.executable);
    out += fmt::format(
        "  {:>8} {:>10} {:>6} {:<13} {:>12} {:<8} {:<5} {:>#18x} {:>14.1f} {:>14}  {}\n",
        call.number, call.executable, call.call, name(plan.kind), call.bytes, info(call.dtype).name,
        name(call.op), call.stream, microseconds(call.launched - origin(log)),
        call.ended == 0 ? "not known"
                        : fmt::format("{:.1f}", microseconds(call.ended - origin(log))),
        printable_line(plan.name));
  }
  return out;
}

std::string flight_json(const FlightLog& log) {
  using nlohmann::json;
  json plans = json::array(), calls = json::array();
  for (const auto& [executable, plan] : log.plans) {
    plans.push_back({{"executable", executable},
                     {"name", plan.name},
                     {"hash", plan.hash},
                     {"collective", std::string(name(plan.kind))}});
  }
  for (const FlightCall& call : log.calls) {
    calls.push_back({{"number", call.number},
                     {"executable", call.executable},
                     {"call", call.call},
                     {"bytes", call.bytes},
                     {"dtype", std::string(info(call.dtype).name)},
                     {"op", std::string(name(call.op))},
                     {"stream", call.stream},
                     {"launched_us", microseconds(call.launched - origin(log))},
                     {"ended_us", call.ended == 0 ? json(nullptr)
                                                  : json(microseconds(call.ended - origin(log)))}});
  }
  const json all = {{"mscclc_flight", kFlightVersion},
                    {"rank", log.rank},
                    {"size", log.size},
                    {"host", log.host},
                    {"process", log.process},
                    {"time", log.time},
                    {"code", log.code},
                    {"reason", log.reason},
                    {"waits", log.waits},
                    {"awaited", log.awaited},
                    {"launched", log.launched},
                    {"plans", plans},
                    {"calls", calls}};
  // Reasons come from other processes, too.
  return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<std::string> write_flight_log(const FlightLog& log, std::string_view pattern) {
  const std::string base = expand_file_name(pattern, log.rank);
  if (base.empty()) {
    return Error{fmt::format("'{}' is not a file name with %h, %p, %r and %%", pattern)};
  }
  if (process_wide<Written>().logs.fetch_add(1) >= kMaxLogs) {
    return Error{fmt::format("this process has written {} already", kMaxLogs)};
  }
  for (int i = 1; i <= kMaxNames; ++i) {
    const std::string name = i == 1 ? base : fmt::format("{}-{}", base, i);
    if (write_new_file(name + ".json", flight_json(log)) &&
        write_new_file(name + ".txt", flight_text(log))) {
      drop_old_logs(pattern);
      return name;
    }
    if (errno != EEXIST) break;
  }
  return Error{fmt::format("{}: {}", base, error_text(errno))};
}

}  // namespace mscclc
