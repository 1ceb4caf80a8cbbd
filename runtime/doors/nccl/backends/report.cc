#include "runtime/doors/nccl/backends/report.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>

#include "ir/diagnostics/printable.h"
#include "runtime/doors/nccl/variables/variables.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/fd.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/log_output.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/result_kind.h"
#include "runtime/support/upper.h"

namespace mscclc::nccl {
namespace {

constexpr std::array<std::string_view, 4> kSubsystems = {"INIT", "COLL", "ENV", "REG"};
constexpr std::array<std::string_view, 6> kLevels = {"NONE", "VERSION", "WARN",
                                                     "INFO", "ABORT",   "TRACE"};
enum Level : int { kOff, kVersion, kWarn, kInfo };
constexpr size_t kMaxErrorText = 1024;  ///< with the zero: NCCL's own limit

/// Never destroyed: threads may report while the process ends.
struct Reporting {
  std::once_flag read;
  std::atomic<int> level{kOff};
  std::atomic<uint32_t> subsystems{0};
  std::atomic<int> output{STDOUT_FILENO};
  std::atomic<bool> lost{false};  ///< a line could not be written, and that was said
  std::atomic<bool> announced{false}, has_origins{false};  ///< were written
  std::string host;
  PerProcess<std::mutex> mutex;  ///< of what follows
  std::string last_error;
  std::set<std::string> said;
};
Reporting& reporting() { return kept_over_forks<Reporting>(); }

/// NCCL takes anything here, so we do: what is not known counts as not set.
std::string setting(const Environment& environment, Variable variable) {
  Diagnostics ignored;
  return environment.has(variable) ? environment.text(variable, ignored).value_or("") : "";
}

/// nullopt: there is none of this name.
std::optional<int> level_of(const std::string& name) {
  const auto found = std::find(kLevels.begin(), kLevels.end(), upper(name));
  if (found == kLevels.end()) return std::nullopt;
  return static_cast<int>(found - kLevels.begin());
}

uint32_t subsystems_of(std::string_view list) {
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  uint32_t bits = 0;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
    for (size_t i = 0; i < kSubsystems.size(); ++i) {
      if (name == "ALL" || name == kSubsystems[i]) bits |= 1u << i;
    }
  }
  return all_but ? ~bits : bits;
}

Reporting& ready() {
  std::call_once(reporting().read, [] { read_debug_settings(); });
  return reporting();
}

/// On standard error, once. REQUIRES: errno of the write that failed.
void say_lost(int output) {
  const std::string why = errno == EAGAIN ? "it has no reader" : error_text(errno);
  if (reporting().lost.exchange(true)) return;
  const std::string text =
      fmt::format("mscclc: lines of NCCL_DEBUG are lost: {}: {}\n",
                  output == STDOUT_FILENO ? "standard output" : "NCCL_DEBUG_FILE", why);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// A log that nothing reads holds nothing up.
void write_line(std::string_view line) {
  const int output = reporting().output;
  const QuietWrites quiet;
  while (!line.empty()) {
    const ssize_t written = ::write(output, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return say_lost(output);
    line.remove_prefix(static_cast<size_t>(written));
  }
}

void write_line(std::string_view level, int device, std::string_view text) {
  write_line(fmt::format("{}:{}:{} [{}] NCCL {} {}\n", reporting().host, ::getpid(),
                         ::syscall(SYS_gettid), device, level, text));
}

/// In this process.
bool is_said_first(const std::string& text) {
  Reporting& p = reporting();
  const std::lock_guard lock(p.mutex.get());
  return p.said.insert(text).second;
}

void warn_once(const std::string& text) {
  if (is_said_first(text))
    write_line("WARN", -1, text);  // may wait for the reader of standard output
}

/// NCCL_DEBUG_FILE.
void open_output(const std::string& file) {
  const std::string name = expand_file_name(file, std::nullopt);
  // What is written later does not wait for the reader of a pipe, either.
  const int output = name.empty() ? -1 : open_log(name).release();
  if (output >= 0) {
    reporting().output = output;
    return;
  }
  const std::string why = name.empty() ? "allowed are %h, %p and %%" : describe_log_error(errno);
  warn_once(fmt::format("NCCL_DEBUG_FILE is {}: {}: lines go to standard output",
                        mscclc::quoted(file), why));
}

std::string text_of(std::string_view what, const Diagnostics& diagnostics) {
  const std::string text = fmt::format("{}: {}", what, message_of(diagnostics));
  return text + origins_in(text, set_values());
}

/// Before anything reads settings: this library takes NCCL's, too.
const bool takes_settings = [] {
  Environment::complete_with(complete);
  return true;
}();

}  // namespace

void read_debug_settings() {
  Reporting& p = reporting();
  if (const int before = p.output.exchange(STDOUT_FILENO); before != STDOUT_FILENO) {
    ::close(before);
  }
  p.lost = false;
  const Environment environment = Environment::of_process();
  p.host = host_name();
  const std::string name = setting(environment, Variable::NCCL_DEBUG);
  const std::optional<int> level = name.empty() ? kOff : level_of(name);
  p.level = level.value_or(kOff);
  const std::string list = upper(setting(environment, Variable::NCCL_DEBUG_SUBSYS));
  p.subsystems = subsystems_of(list.empty() ? "INIT,ENV" : list);
  const std::string file = setting(environment, Variable::NCCL_DEBUG_FILE);
  if (!level) {
    warn_once(
        fmt::format("NCCL_DEBUG is {}; known are VERSION, WARN, INFO and TRACE: nothing is written",
                    mscclc::quoted(name)));
  }
  if (p.level != kOff && !file.empty()) open_output(file);
}

bool informs(Subsystem subsystem) {
  const Reporting& p = ready();
  return p.level.load(std::memory_order_relaxed) >= kInfo &&
         (p.subsystems.load(std::memory_order_relaxed) >> static_cast<unsigned>(subsystem) & 1) !=
             0;
}

void inform(Subsystem subsystem, int device, std::string_view text) {
  if (informs(subsystem)) write_line("INFO", device, text);
}

void inform_once(Subsystem subsystem, int device, const std::string& text) {
  if (informs(subsystem) && is_said_first(text)) write_line("INFO", device, text);
}

void announce_version(int version) {
  Reporting& p = ready();
  if (p.level < kVersion || p.announced.exchange(true)) return;
  write_line(fmt::format("NCCL version {} (calls that no plan of mscclc serves)\n",
                         version_text(version)));
}

ncclResult_t fail(ncclResult_t code, std::string_view text) {
  Reporting& p = ready();
  {
    const std::lock_guard lock(p.mutex.get());
    p.last_error = text.substr(0, kMaxErrorText - 1);
  }
  if (p.level >= kWarn) write_line("WARN", -1, text);
  return code;
}

ncclResult_t result_of(const Diagnostics& diagnostics) {
  switch (result_kind(diagnostics)) {
    case ResultKind::argument:
      return ncclInvalidArgument;
    case ResultKind::usage:
    case ResultKind::no_plan:
    case ResultKind::not_proved:
    case ResultKind::aborted:
      return ncclInvalidUsage;
    case ResultKind::peer:
    case ResultKind::timeout:
      return ncclRemoteError;
    case ResultKind::memory:
    case ResultKind::system:
      return ncclSystemError;
    case ResultKind::internal:
      break;
  }
  return ncclInternalError;
}

ncclResult_t fail(std::string_view what, const Diagnostics& diagnostics) {
  return fail(result_of(diagnostics), text_of(what, diagnostics));
}

ncclResult_t fail(ncclResult_t otherwise, std::string_view what, const Diagnostics& diagnostics) {
  const ResultKind kind = result_kind(diagnostics);
  const bool says_more = kind != ResultKind::system && kind != ResultKind::internal;
  return fail(says_more ? result_of(diagnostics) : otherwise, text_of(what, diagnostics));
}

void warn_of_setting(const std::string& text) {
  (void)ready();
  warn_once(text);
}

void warn_of_settings() {
  const Environment::Values set = set_values();
  for (const std::string& text : warnings_of(set)) warn_of_setting(text);
  if (!informs(Subsystem::env) || reporting().has_origins.exchange(true)) return;
  for (const std::string& text : origins(set)) inform(Subsystem::env, -1, "plans have " + text);
}

std::string last_error() {
  Reporting& p = reporting();
  const std::lock_guard lock(p.mutex.get());
  return p.last_error;
}

const char* error_string(ncclResult_t code) {
  switch (code) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclTimeout:
      return "operation timed out";
    case ncclResultMost:
      break;
  }
  return "unknown result code";
}

std::string version_text(int version) {
  if (version < 10000)
    return fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace mscclc::nccl
