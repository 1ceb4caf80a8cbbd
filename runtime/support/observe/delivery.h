// Lines of the log for a callback of the application. A thread of its own calls it: a thread that
// logs may hold locks of the runtime, and the callback may use the library, or wait for a thread
// that does.
//
// Thread safety: from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/process/forks.h"

namespace mscclc {

/// Gets each line, without its end, one call at a time. It must not throw.
using LogSink = std::function<void(const std::string& line)>;

class Delivery {
 public:
  /// More lines than that, if the sink does not keep up, are lost, and a line says how many.
  static constexpr size_t kMaxLines = 10000;

  /// To be stopped before it is destroyed. nullptr: reported (no-thread).
  static std::shared_ptr<Delivery> start(LogSink sink, Diagnostics& diagnostics);

  /// Does not wait.
  void take(std::string line);
  /// Waits until the sink has had all lines and has returned, and calls it no more. From inside the
  /// sink it does not wait, and returns the lines that are left.
  std::deque<std::string> stop();
  /// The same for a process that ends: waits for so long at most.
  void stop_within(std::chrono::milliseconds limit);

  /// False in a child of fork(), which has none of its parent's threads.
  bool is_of_this_process() const { return forks_ == forks_so_far(); }
  const LogSink& sink() const { return sink_; }

 private:
  explicit Delivery(LogSink sink) : sink_(std::move(sink)) {}
  void serve();
  void end();
  /// Whether the sink has called. REQUIRES: the mutex.
  bool is_inside() const { return thread_.get_id() == std::this_thread::get_id(); }
  /// The next line, or how many are lost. REQUIRES: the mutex.
  std::string next();

  const LogSink sink_;
  const uint32_t forks_ = forks();
  std::thread thread_;  ///< keeps this alive
  std::mutex mutex_;    ///< of what follows; not held while the sink is called
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  uint64_t lost_ = 0;
  bool stop_ = false, ended_ = false;
};

}  // namespace mscclc
