// The thread that compiles kernels: one a process, of low priority, with a short queue. It never
// keeps a process from ending, except for the compilation that it is at: NVIDIA's library must not
// be taken down under it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "ir/support/result.h"

namespace mscclc {

/// Thread safety: any thread. A child of fork() inherits it, and does nothing with it.
class BackgroundThread {
 public:
  static constexpr size_t kMaxJobs = 256;

  /// Does `job` on the thread, after those before it. An error: it is never done, as too many wait,
  /// the system gives no thread, the process ends, or its parent had such a thread when it forked,
  /// which may have left the compiler in the midst of something. Jobs that wait are dropped when
  /// the process ends. REQUIRES: libraries that jobs use are loaded, and what these make at their
  /// first use is made, before the first job is added: they go after the thread then.
  Result<void> add(std::function<void()> job);
  /// Why nothing may be compiled in this process any more, on any thread.
  std::optional<Error> why_not() const;

 private:
  /// Of the process that has asked first?
  bool is_own() const;
  bool start();
  void run();
  /// Ends it, before libraries that were loaded earlier go.
  void stop();

  mutable std::atomic<int64_t> owner_{-1};  ///< forks() of the process that has asked first
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool started_ = false, busy_ = false;
  std::atomic<bool> ending_{false};  ///< written with the mutex
};

/// The process's.
BackgroundThread& background_thread();

}  // namespace mscclc
