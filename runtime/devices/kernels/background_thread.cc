#include "runtime/devices/kernels/background_thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "runtime/support/fixed_times.h"
#include "runtime/support/process/forks.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

constexpr int kNice = 10;

}  // namespace

BackgroundThread& background_thread() { return kept_over_forks<BackgroundThread>(); }

bool BackgroundThread::is_own() const {
  int64_t none = -1;
  const int64_t own = forks();
  return owner_.compare_exchange_strong(none, own) || none == own;
}

std::optional<Error> BackgroundThread::why_not() const {
  if (!is_own()) return Error{"this process is a child of one that had begun to compile kernels"};
  if (ending_) return Error{"the process ends"};
  return std::nullopt;
}

Result<void> BackgroundThread::add(std::function<void()> job) {
  if (auto why = why_not()) return *std::move(why);
  const std::lock_guard lock(mutex_);
  if (ending_) return Error{"the process ends"};  // since it was asked
  if (jobs_.size() >= kMaxJobs) return Error{"too many kernels wait to be compiled"};
  if (!started_ && !start()) return Error{"the system gives no thread that compiles them"};
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return {};
}

bool BackgroundThread::start() {
  std::thread thread = quiet_thread("mscclc-kernels", [this] { run(); });
  if (!thread.joinable()) return false;
  thread.detach();
  started_ = true;
  // What is registered last is called first: before libraries go that are loaded by now.
  (void)std::atexit([] { background_thread().stop(); });
  (void)hold_over_forks<BackgroundThread, &BackgroundThread::mutex_>();
  return true;
}

void BackgroundThread::run() {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
  std::unique_lock lock(mutex_);
  for (;;) {
    // Once the process ends it stays here: its own end would destroy what the compiler keeps for a
    // thread, beside the end of the compiler.
    changed_.wait(lock, [this] { return !jobs_.empty() && !ending_; });
    const std::function<void()> job = std::exchange(jobs_.front(), {});
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void BackgroundThread::stop() {
  if (!is_own()) return;  // a child, which has no such thread
  std::unique_lock lock(mutex_);
  ending_ = true;
  jobs_.clear();
  changed_.notify_all();
  (void)changed_.wait_for(lock, kLastCompilation, [this] { return !busy_; });
}

}  // namespace mscclc
