#include "runtime/core/communicator/monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "runtime/core/communicator/hang_report.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/flight_file.h"
#include "runtime/support/observe/log.h"

namespace mscclc {
namespace {

/// Between the first block that gives up and the watchdog's own report: by then the others have
/// given up too, and an application that waits has asked itself.
constexpr auto kGrace = 10 * Watchdog::kPeriod;
/// The same where processes are to end, and some do as soon as this rank has said what it knows.
constexpr auto kShortGrace = Watchdog::kPeriod;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string line_of(const Note& note) {
  const std::string where = note.file.empty() ? "" : note.file + ": ";
  return where + note.text;
}

}  // namespace

bool Monitor::start(Diagnostics& diagnostics) {
  watch_ = Watchdog::watch([this] { look(); }, diagnostics);
  if (watch_ != nullptr && ends_process_) {  // after what ends the waits
    group_->bootstrap->on_failure([hasten = watch_->haste()](const std::string&) { hasten(); });
  }
  return watch_ != nullptr;
}

// A failure that was not asked for, and that the watchdog had no time for.
void Monitor::close() {
  watch_.reset();
  if (group_->failure == nullptr || !group_->failure->waits_end()) return;
  const Waits found = waits();
  notice(found, false);
  if (must_end(found)) end_process(found);
  if (!written_) write_down(found);
}

void Monitor::add(const std::shared_ptr<Executable::State>& executable) {
  const std::lock_guard lock(mutex_);
  std::erase_if(executables_, [](const auto& e) { return e.expired(); });
  executables_.push_back(executable);
}

std::vector<std::shared_ptr<Executable::State>> Monitor::executables() {
  std::vector<std::shared_ptr<Executable::State>> held;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : executables_) {
    if (auto executable = weak.lock()) held.push_back(std::move(executable));
  }
  return held;
}

Monitor::Waits Monitor::waits() {
  Waits waits;
  const uint32_t rank = group_->rank();
  for (const auto& executable : executables()) {
    const device::Fault* faults = executable->memory.faults();
    const uint32_t blocks = executable->plan->ranks[rank].blocks;
    waits.cut_short |= have_given_up(faults, blocks);
    waits.count += describe_faults(*executable->plan, rank, faults, blocks,
                                   executable->memory.regions()[rank], waits.notes, waits.ranks);
  }
  const std::lock_guard lock(mutex_);
  const bool cut_short = waits.cut_short || last_waits_.cut_short;
  if (waits.count >= last_waits_.count) last_waits_ = std::move(waits);
  last_waits_.cut_short = cut_short;
  return last_waits_;
}

// Blocks of executables that are gone have given up too, and what came after them has not run.
void Monitor::notice(const Waits& waits, bool wait) {
  if (waits.count == 0 && !group_->failure->waits_end()) return;
  const bool failed = group_->failure->happened();  // then they ended since they were to
  std::string why = "no thread block waits";
  if (waits.count > 0 || !failed) {
    const std::string limit =
        fmt::format("longer than {} s ", std::chrono::duration<double>(group_->timeout).count());
    why = fmt::format("{} thread block{} waited {}for something that did not come",
                      waits.count == 0 ? "a" : std::to_string(waits.count),
                      waits.count > 1 ? "s" : "", failed ? "" : limit);
  }
  group_->report_hang(waits.ranks, why, wait);
}

bool Monitor::check(Diagnostics& diagnostics) {
  const Waits found = waits();
  notice(found, true);
  if (must_end(found)) end_process(found);
  Diagnostic* error = group_->failure->report(diagnostics);
  if (error == nullptr) return true;
  (void)write_log(*error, found);
  error->notes.insert(error->notes.end(), found.notes.begin(), found.notes.end());
  const std::lock_guard lock(mutex_);
  for (const std::string& line : advice_) error->notes.push_back({line});
  return false;
}

// All ranks of a process may share this thread: it waits for none of them, and asks again. What the
// streams hold after a call that was cut short is wrong, and runs on: to know more of a hang is
// worth only a moment.
void Monitor::look() {
  if (!group_->failure->waits_end() || (written_ && !ends_process_)) return;
  const auto now = std::chrono::steady_clock::now();
  if (!waits_ended_) waits_ended_ = now;
  const auto since = now - *waits_ended_;
  const Waits found = waits();
  const bool ends = must_end(found);
  if (!ends && (written_ || since < (ends_process_ ? kShortGrace : kGrace))) return;
  notice(found, false);
  const bool open = group_->failure->is_open();
  if (ends && (!open || since >= kShortReportTime)) end_process(found);
  if (!open) write_down(found);
}

bool Monitor::must_end(const Waits& waits) const {
  return ends_process_ && waits.cut_short && !group_->failure->is_known();
}

void Monitor::end_process(const Waits& waits) {
  Diagnostics diagnostics;
  std::string why;
  if (const Diagnostic* const error = group_->failure->describe(diagnostics)) {
    const auto logged = write_log(*error, waits);
    why = logged.empty() ? error->code + ": " + error->message
                         : fmt::format("{}", fmt::join(logged, "; "));
  }
  if (!waits.ranks.empty()) {
    why += fmt::format("; they waited for rank{} {}", waits.ranks.size() == 1 ? "" : "s",
                       fmt::join(waits.ranks, ", "));
  }
  log_always(
      LogArea::init, group_->rank(),
      "this process ends, as calls of its rank were cut short, whose results are not whole: " +
          why);
  std::abort();
}

void Monitor::write_down() {
  const Waits found = waits();
  notice(found, false);
  write_down(found);
}

void Monitor::write_down(const Waits& found) {
  Diagnostics diagnostics;
  const Diagnostic* error = group_->failure->describe(diagnostics);
  if (error != nullptr) (void)write_log(*error, found);
}

// The watchdog and the application may come at once. The one that gets the error may end the
// process: the file must be whole by then. The log may have to wait for its reader, so it comes
// after the mutex.
std::vector<std::string> Monitor::write_log(const Diagnostic& error, const Waits& waits) {
  std::vector<std::string> lines;
  {
    const std::lock_guard one_at_a_time(writing_);
    if (written_) return {};
    lines = write_file(error, waits);
    written_ = true;
  }
  for (const std::string& line : lines) log(LogLevel::warn, LogArea::init, group_->rank(), line);
  return lines;
}

std::vector<std::string> Monitor::write_file(const Diagnostic& error, const Waits& waits) {
  std::vector<std::string> lines = {fmt::format("{}: {}", error.code, error.message)};
  const bool hang = error.code == "hang";
  if (group_->records.flight_file != kNoFlightFile) {
    bool written = false;
    lines.push_back(write_flight_file(error, waits, written));
    if (hang || !written) add_advice(lines.back());
  }
  if (hang && !group_->compared.at_launch) {
    lines.emplace_back(
        "with MSCCLC_CHECK_CALLS=1 ranks compare each call before they launch it: calls that "
        "differ are an error then, and no hang");
    add_advice(lines.back());
  }
  return lines;
}

void Monitor::add_advice(const std::string& text) {
  const std::lock_guard lock(mutex_);
  advice_.push_back(text);
}

std::string Monitor::write_flight_file(const Diagnostic& error, const Waits& waits, bool& written) {
  const uint32_t rank = group_->rank();
  FlightLog flight{.rank = rank,
                   .size = group_->size(),
                   .host = host_name(),
                   .process = ::getpid(),
                   .time = utc_now(),
                   .code = error.code,
                   .reason = error.message,
                   .launched = group_->records.recorder.count(),
                   .calls = group_->records.recorder.calls(),
                   .plans = group_->records.recorder.plans(),
                   .waits = {},
                   .awaited = waits.ranks};
  for (const Note& note : waits.notes) flight.waits.push_back(line_of(note));
  const auto name = write_flight_log(flight, group_->records.flight_file);
  written = static_cast<bool>(name);
  if (!written) {
    return fmt::format("the last calls of rank {} are not written down (MSCCLC_FLIGHT_FILE): {}",
                       rank, name.error().text());
  }
  return fmt::format(
      "the last calls are in {}.txt and .json; 'mscclc report' with the .json files of all ranks "
      "says where the ranks differ",
      *name);
}

}  // namespace mscclc
