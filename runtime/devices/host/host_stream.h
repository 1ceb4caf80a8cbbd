// A stream of the host: a thread that does launches and copies one after the other. The blocks of a
// launch are fibers of that thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "executor/cpu/fiber.h"
#include "executor/launch.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"
#include "runtime/api/device.h"
#include "runtime/support/idle.h"

namespace mscclc {

/// How a launch has ended.
enum class Ended {
  well,
  gave_up,    ///< some of its blocks have
  no_memory,  ///< for their stacks: nothing has run
};

/// Runs all blocks of a launch to their ends, or until they have given up. `idle`: that of the
/// thread, which rests while none can move.
Ended run_launch(const device::LaunchPlan& plan, FiberPool& fibers, Idle& idle);

/// Thread safety: from any thread.
class HostStream {
 public:
  /// nullptr: reported (no-thread).
  [[nodiscard]] static std::unique_ptr<HostStream> create(Diagnostics& diagnostics);
  /// Waits for what is queued.
  ~HostStream();
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  /// `queued` is kept until it has been done or left out.
  void launch(const device::LaunchPlan& plan, std::shared_ptr<void> queued);
  void copy(void* to, const void* from, uint64_t bytes, std::shared_ptr<void> queued);
  void scale(const Scaling& what, std::shared_ptr<void> queued);
  /// Calls `work` at its turn; `always`: also after a launch that was given up.
  void call(std::function<void()> work, std::shared_ptr<void> queued, bool always);
  /// Sets a flag when what is queued so far has been done or left out.
  void mark(std::shared_ptr<std::atomic<bool>> flag);
  /// What is queued from now on begins when the flag is set, which another stream's mark() does.
  void wait_for(std::shared_ptr<std::atomic<bool>> flag);
  /// Waits until all that was queued has been done. Fails where a launch has failed since the last
  /// question.
  ///
  /// What is queued after a launch that was given up is left out, until here: its results would be
  /// garbage, and copies would touch staging buffers that peers still write.
  Result<void> synchronize();
  /// Waits, and leaves all that synchronize() would say.
  void drain();

 private:
  HostStream();
  struct Task {
    std::function<void()> run;
    bool always = false;  ///< also after a launch that was given up
  };
  void push(Task task);
  bool run(const Task& task);
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool busy_ = false, stop_ = false, gave_up_ = false;
  std::string failure_;
  FiberPool fibers_;  ///< the thread's own
  Idle idle_;         ///< the same
  std::thread thread_;
};

}  // namespace mscclc
