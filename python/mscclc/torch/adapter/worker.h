// A thread that does what it is given, one thing after the other.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace mscclc::torch_adapter {

/// From any thread. What it is given throws nothing.
class Worker {
 public:
  Worker() = default;
  ~Worker() { close(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// False: it is closed, or of the process before fork().
  [[nodiscard]] bool post(std::function<void()> task);
  /// Everything has been done.
  bool is_idle() const;
  void wait_until_idle();
  /// Waits for what was posted. The second time nothing.
  void close();

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> waiting;
    bool busy = false, closed = false;
    bool is_idle() const { return !busy && waiting.empty(); }
  };
  static void work_through(Queue& queue);

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;              ///< since the first post()
  const pid_t process_ = getpid();  ///< a child of fork() has no such thread
};

}  // namespace mscclc::torch_adapter
