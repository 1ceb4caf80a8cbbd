#include "runtime/network/threads/copy_workers.h"

#include <utility>

#include "runtime/support/idle.h"

namespace mscclc::net {

std::unique_ptr<CopyWorkers> CopyWorkers::start(uint32_t count, std::chrono::microseconds awake,
                                                const BeginThread& begin,
                                                Diagnostics& diagnostics) {
  std::unique_ptr<CopyWorkers> workers(new CopyWorkers(awake));
  for (uint32_t i = 0; i < count; ++i) {
    std::thread thread = begin_lane_thread(
        "mscclc-worker", begin, [all = workers.get()] { all->run(); }, diagnostics);
    if (!thread.joinable()) return nullptr;
    workers->threads_.push_back(std::move(thread));
  }
  return workers;
}

CopyWorkers::~CopyWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CopyWorkers::give(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++waiting_;
  }
  news_.notify_one();
}

/// To be woken takes longer than to carry what comes; so it looks for a while.
void CopyWorkers::await_work() const {
  Idle idle(awake_);
  while (!are_wanted() && !idle.is_tired()) idle.rest();
}

void CopyWorkers::run() {
  for (;;) {
    await_work();
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      news_.wait(lock, [&] { return stop_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
      --waiting_;
    }
    work();
  }
}

}  // namespace mscclc::net
