// Finds out whether a communicator has failed, for check() and for the watchdog, writes down what
// there is to know when it has, and ends the process where that is wanted.
//
// Thread safety: from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/communicator/executable.h"
#include "runtime/core/group/group.h"
#include "runtime/support/observe/watchdog.h"

namespace mscclc {

class Monitor {
 public:
  /// `ends_process`: CommunicatorOptions::ends_process.
  Monitor(std::shared_ptr<RankGroup> group, bool ends_process)
      : group_(std::move(group)), ends_process_(ends_process) {}
  /// Starts watching in the background. False: reported.
  [[nodiscard]] bool start(Diagnostics& diagnostics);
  /// A last look, before executables go: no call comes after it.
  void close();

  void add(const std::shared_ptr<Executable::State>& executable);
  /// Those that are still there.
  std::vector<std::shared_ptr<Executable::State>> executables();
  /// Reports what has gone wrong, if anything has; all ranks learn of a hang of this one, and it
  /// waits some seconds at most for their reports.
  [[nodiscard]] bool check(Diagnostics& diagnostics);
  /// Lets blocks that have given up be a failure of the communicator, as far as it is known now.
  void notice() { notice(waits(), false); }
  /// Writes down what has gone wrong, if anything has, as far as it is known now: there may be no
  /// later call.
  void write_down();

 private:
  /// What the blocks that gave up have waited for.
  struct Waits {
    bool cut_short = false;  ///< some gave up, or did not begin
    size_t count = 0;
    std::vector<Note> notes;
    std::set<uint32_t> ranks;
  };
  /// Including executables that have been destroyed since they were seen waiting.
  Waits waits();
  void notice(const Waits& waits, bool wait);
  void look();
  /// Calls of this rank have been cut short, the program knows nothing of it, and the process is to
  /// end then.
  bool must_end(const Waits& waits) const;
  [[noreturn]] void end_process(const Waits& waits);
  void write_down(const Waits& found);
  /// Writes the file and the log, once; what was logged. A later call finds both written: nothing.
  std::vector<std::string> write_log(const Diagnostic& error, const Waits& waits);
  /// The file; then what there is to log.
  std::vector<std::string> write_file(const Diagnostic& error, const Waits& waits);
  std::string write_flight_file(const Diagnostic& error, const Waits& waits, bool& written);
  void add_advice(const std::string& text);

  const std::shared_ptr<RankGroup> group_;
  const bool ends_process_;
  std::optional<std::chrono::steady_clock::time_point> waits_ended_;  ///< as the watchdog has seen
  std::mutex mutex_;                                                  ///< of the next three
  std::vector<std::weak_ptr<Executable::State>> executables_;
  Waits last_waits_;
  std::vector<std::string> advice_;  ///< notes of the error: where the last calls are, what helps
  std::mutex writing_;
  std::atomic<bool> written_{false};  ///< changes under `writing_`
  std::unique_ptr<Watchdog::Watch> watch_;
};

}  // namespace mscclc
