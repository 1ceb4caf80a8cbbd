// How far long work has come, in one line at the bottom of a terminal: what, how far, how long it
// may still take. Where standard error is no terminal there is none.
//
//   Progress progress("verify", files.size());
//   for (const std::string& file : files) {
//     progress.next(file);
//     …
//   }
//
// The line comes once the work has taken a moment, and goes when what put() prints comes, and at
// the end.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace mscclc {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFirst{700}, kEach{250};

  /// `total`: how many pieces there are. `fd`: where the line is shown, if that is a terminal. One
  /// at a time in a process.
  explicit Progress(std::string what, uint64_t total, int fd = STDERR_FILENO,
                    std::chrono::milliseconds first = kFirst);
  /// Removes the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Another piece begins; those before it are done.
  void next(const std::string& name);
  /// Removes the line of the process's progress, if it is shown: something else is to be printed.
  static void hide();

 private:
  void show_again_and_again();
  void show();
  void erase();

  const std::string what_;
  const uint64_t total_;
  const int fd_;
  const Clock::time_point begun_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string now_;
  uint64_t begun_pieces_ = 0;
  bool over_ = false, shown_ = false;
  const std::chrono::milliseconds first_;
  std::thread thread_;  ///< none: nothing is shown
};

/// "verify: 3 of 12, 8 s so far, about 24 s left: plans/ring.mscl", of at most `most` characters.
/// `begun`: pieces that have begun; all but the last are done.
std::string progress_text(const std::string& what, const std::string& now, uint64_t begun,
                          uint64_t total, std::chrono::duration<double> taken, size_t most);

}  // namespace mscclc
