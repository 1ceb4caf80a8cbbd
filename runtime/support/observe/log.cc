#include "runtime/support/observe/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostics/printable.h"
#include "runtime/support/fd.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/log_output.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/upper.h"

namespace mscclc {

namespace {

constexpr std::array<std::string_view, 9> kAreas = {"INIT", "BOOTSTRAP", "ENV",   "LOAD",  "REG",
                                                    "BIND", "CALL",      "PROXY", "SELECT"};
constexpr std::array<std::string_view, 4> kLevels = {"", "WARN", "INFO", "TRACE"};
constexpr uint32_t kAll = (1u << kAreas.size()) - 1;

/// What gets the lines. Never destroyed: threads log until the process ends.
struct Receivers {
  std::mutex mutex;  ///< of what follows
  bool started = false;
  int output = STDERR_FILENO;
  std::string later;              ///< the pattern of a file that the first line opens; "": none
  bool lost = false;              ///< some of it could not be written, and that was said
  std::shared_ptr<Delivery> now;  ///< nullptr: the output
  std::vector<std::shared_ptr<Delivery>> past;  ///< whose threads cannot be waited for
};
Receivers& receivers() {
  [[maybe_unused]] static const int registered = hold_over_forks<Receivers, &Receivers::mutex>();
  return kept_over_forks<Receivers>();
}
std::mutex& mutex() { return receivers().mutex; }

/// nullptr where lines go to the output. A child of fork() calls its parent's sink by a thread of
/// its own. REQUIRES: the mutex.
Delivery* receiver() {
  Receivers& all = receivers();
  if (all.now == nullptr || all.now->is_of_this_process()) return all.now.get();
  Diagnostics none;
  all.past.push_back(all.now);
  all.now = Delivery::start(all.now->sink(), none);
  return all.now.get();
}

/// The process ends.
void end_receiver() {
  std::unique_lock lock(mutex());
  Receivers& all = receivers();
  if (all.now == nullptr || !all.now->is_of_this_process()) return;
  const std::shared_ptr<Delivery> last = all.now;
  all.past.push_back(std::exchange(all.now, nullptr));
  lock.unlock();
  last->stop_within(kLastLines);
}

bool refuse(Variable variable, std::string_view value, const std::string& allowed,
            Diagnostics& diagnostics) {
  diagnostics.error(
      "bad-variable", {},
      fmt::format("{} is {}; allowed is {}", info(variable).name, quoted(value), allowed));
  return false;
}

std::optional<LogLevel> level_of(std::string_view name) {
  for (size_t i = 1; i < kLevels.size(); ++i) {
    if (kLevels[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

/// Bits of "INIT,CALL", of all but these for "^CALL".
std::optional<uint32_t> areas_of(std::string_view list) {
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  uint32_t areas = 0;
  for (;;) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, comma);
    const auto found = std::find(kAreas.begin(), kAreas.end(), name);
    if (found == kAreas.end() && name != "ALL") return std::nullopt;
    areas |= name == "ALL" ? kAll : 1u << (found - kAreas.begin());
    if (comma == list.size()) break;
    list.remove_prefix(comma + 1);
  }
  return all_but ? kAll & ~areas : areas;
}

/// The pattern of the file's name; "": there is none. nullopt: reported.
std::optional<std::string> output_pattern(const Environment& environment,
                                          Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_DEBUG_FILE)) return "";
  auto pattern = environment.text(Variable::MSCCLC_DEBUG_FILE, diagnostics);
  if (pattern && expand_file_name(*pattern, std::nullopt).empty()) {
    refuse(Variable::MSCCLC_DEBUG_FILE, *pattern, "a file's name, with %h, %p and %%", diagnostics);
    return std::nullopt;
  }
  return pattern;
}

/// -1: reported.
int open_output(const std::string& pattern, Diagnostics& diagnostics) {
  if (pattern.empty()) return STDERR_FILENO;
  const std::string name = expand_file_name(pattern, std::nullopt);
  // What is written later does not wait for the reader of a pipe, either.
  const int file = open_log(name, O_APPEND).release();
  if (file < 0) {
    diagnostics.error("cannot-log", {},
                      fmt::format("cannot write the log {}: {}", quoted(name, name.size()),
                                  describe_log_error(errno)));
  }
  return file;
}

/// Where nothing is logged, only a line that is written in any case (log_always()) needs the file.
/// Without it, lines go to standard error. REQUIRES: the mutex.
void open_late() {
  Receivers& to = receivers();
  if (to.later.empty()) return;
  Diagnostics problems;
  const int file = open_output(std::exchange(to.later, {}), problems);
  if (file >= 0) {
    to.output = file;
    return;
  }
  const std::string text = fmt::format("mscclc: {}\n", problems.all().front().message);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// Writes one line whole, or loses it: a log must not end the process that writes it, nor hold it
/// up. The first that is lost is reported, if that can be. REQUIRES: the mutex.
void write_line(std::string_view line) {
  const QuietWrites quiet;
  open_late();
  Receivers& to = receivers();
  if (::write(to.output, line.data(), line.size()) >= 0 || to.lost) return;
  to.lost = true;
  if (to.output == STDERR_FILENO) return;
  const std::string why = errno == EAGAIN ? "it has no reader" : error_text(errno);
  const std::string text =
      fmt::format("mscclc: lines of the log (MSCCLC_DEBUG_FILE) are lost: {}\n", why);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// REQUIRES: the mutex.
void write_or_deliver(const std::string& line) {
  if (Delivery* const to = receiver()) {
    to->take(line);
  } else {
    write_line(line + "\n");
  }
}

void log_variables(const Environment& environment) {
  if (!logs(LogLevel::info, LogArea::env)) return;
  Diagnostics ignored;
  for (const VariableInfo& row : variable_table()) {
    if (row.group != VariableGroup::ours || !environment.has(row.variable)) continue;
    const bool secret = row.kind == VariableKind::secret;
    const auto value = secret ? std::nullopt : environment.text(row.variable, ignored);
    log(LogLevel::info, LogArea::env, std::nullopt,
        fmt::format("{} is {}", row.name, value ? quoted(*value) : "set"));
  }
}

void write_log(LogLevel level, LogArea area, std::optional<uint32_t> rank, std::string_view text) {
  const std::string line =
      fmt::format("{}:{}:{} [{}] mscclc {} {} {}", host_name(), ::getpid(), ::syscall(SYS_gettid),
                  rank ? std::to_string(*rank) : "-", kLevels[static_cast<size_t>(level)],
                  kAreas[static_cast<size_t>(area)], printable_line(text));
  const std::lock_guard lock(mutex());
  write_or_deliver(line);
}

}  // namespace

void log(LogLevel level, LogArea area, std::optional<uint32_t> rank, std::string_view text) {
  if (logs(level, area)) write_log(level, area, rank, text);
}

void log_always(LogArea area, std::optional<uint32_t> rank, std::string_view text) {
  write_log(LogLevel::warn, area, rank, text);
}

namespace {

void set_logged(LogLevel level, uint32_t areas) {
  auto& logged = kept_over_forks<log_detail::Logged>();
  logged.warns = level >= LogLevel::warn;
  logged.info_areas = level >= LogLevel::info ? areas : 0;
  logged.trace_areas = level >= LogLevel::trace ? areas : 0;
}

}  // namespace

bool set_log_sink(LogSink sink, Diagnostics& diagnostics) {
  std::shared_ptr<Delivery> next;
  if (sink) {
    next = Delivery::start(std::move(sink), diagnostics);
    if (next == nullptr) return false;
  }
  std::unique_lock lock(mutex());
  // Forks wait for the mutex: a child would find the lock of the C library's list taken.
  if (next != nullptr) {
    [[maybe_unused]] static const int registered = std::atexit(end_receiver);
  }
  std::shared_ptr<Delivery> before = std::exchange(receivers().now, next);
  if (before == nullptr) return true;
  if (!before->is_of_this_process()) {
    receivers().past.push_back(std::move(before));
    return true;
  }
  lock.unlock();
  const auto left = before->stop();
  const std::lock_guard again(mutex());  // not held when the sink goes
  for (const std::string& line : left) write_or_deliver(line);
  return true;
}

bool start_log(const Environment& environment, Diagnostics& diagnostics) {
  {
    const std::lock_guard lock(mutex());
    if (receivers().started) return true;
    auto level = LogLevel::off;
    uint32_t areas = *areas_of("INIT,BOOTSTRAP,ENV");
    if (environment.has(Variable::MSCCLC_DEBUG)) {
      const auto name = environment.text(Variable::MSCCLC_DEBUG, diagnostics);
      if (!name) return false;
      const auto found = level_of(upper(*name));
      if (!found) {
        return refuse(Variable::MSCCLC_DEBUG, *name, "WARN, INFO or TRACE", diagnostics);
      }
      level = *found;
    }
    if (environment.has(Variable::MSCCLC_DEBUG_SUBSYS)) {
      const auto list = environment.text(Variable::MSCCLC_DEBUG_SUBSYS, diagnostics);
      if (!list) return false;
      const auto found = areas_of(upper(*list));
      if (!found) {
        return refuse(Variable::MSCCLC_DEBUG_SUBSYS, *list,
                      fmt::format("ALL or some of {}, separated by commas; after a ^ all but these",
                                  fmt::join(kAreas, ", ")),
                      diagnostics);
      }
      areas = *found;
    }
    const auto pattern = output_pattern(environment, diagnostics);
    if (!pattern) return false;
    if (level == LogLevel::off) {
      receivers().later = *pattern;
    } else {
      const int file = open_output(*pattern, diagnostics);
      if (file < 0) return false;
      receivers().output = file;
    }
    receivers().started = true;
    set_logged(level, areas);
  }
  log_variables(environment);
  return true;
}

void reset_log() {
  const std::lock_guard lock(mutex());
  Receivers& all = receivers();
  if (all.output != STDERR_FILENO) ::close(all.output);
  all.output = STDERR_FILENO;
  all.later.clear();
  all.started = all.lost = false;
  set_logged(LogLevel::off, 0);
}

}  // namespace mscclc
