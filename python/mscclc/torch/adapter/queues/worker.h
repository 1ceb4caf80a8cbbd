// Threads that do what they are given, one thing after the other.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mscclc::torch_adapter {

/// From any thread. What it is given throws nothing.
class Worker {
 public:
  /// What is left of a task, and may wait for tasks that are posted later: callbacks of its future
  /// do. It is done while those run, by another thread, if need be. Empty: nothing is left.
  using Rest = std::function<void()>;
  using Task = std::function<Rest()>;

  Worker();
  ~Worker() { close(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// False: it is closed, or of the process before fork().
  [[nodiscard]] bool post(Task task);
  /// Everything has been done, except what may be left of tasks.
  bool is_idle() const;
  void wait_until_idle();
  /// Waits for all that was posted, unless it is called by what was posted. The second time
  /// nothing.
  void close() { close(*queue_); }
  class All;

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> waiting;
    bool busy = false, closed = false;
    size_t free = 0;  ///< threads that wait for a task
    std::vector<std::thread> threads;
    const pid_t process = getpid();  ///< a child of fork() has no such threads
    Queue() = default;
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    bool is_idle() const { return !busy && waiting.empty(); }
  };
  /// Starts a thread, unless one is free. The queue is locked.
  static void need_thread(const std::shared_ptr<Queue>& queue);
  static void work_through(const std::shared_ptr<Queue>& queue);
  static void close(Queue& queue);

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
};

/// The workers of the process. From any thread.
class Worker::All {
 public:
  /// Worker::close() of all there are: Python is about to end, and what they do may need it.
  void close();

 private:
  friend class Worker;
  void add(const std::shared_ptr<Queue>& queue);

  std::atomic<pid_t> process_{0};  ///< that has made the first; 0: there is none
  std::mutex mutex_;               ///< may be held forever in a child of it
  std::vector<std::weak_ptr<Queue>> queues_;
};

}  // namespace mscclc::torch_adapter
