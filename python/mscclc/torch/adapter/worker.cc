#include "python/mscclc/torch/adapter/worker.h"

namespace mscclc::torch_adapter {

bool Worker::post(std::function<void()> task) {
  if (getpid() != process_) return false;
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->closed) return false;
    queue_->waiting.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([queue = queue_] { work_through(*queue); });
  }
  queue_->changed.notify_all();
  return true;
}

bool Worker::is_idle() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->is_idle();
}

void Worker::wait_until_idle() {
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [&] { return queue_->is_idle(); });
}

void Worker::work_through(Queue& queue) {
  std::unique_lock lock(queue.mutex);
  for (;;) {
    queue.changed.wait(lock, [&] { return queue.closed || !queue.waiting.empty(); });
    if (queue.waiting.empty()) return;
    queue.busy = true;
    {
      const auto task = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      lock.unlock();
      task();
    }  // what it held ends here, without the lock
    lock.lock();
    queue.busy = false;
    queue.changed.notify_all();
  }
}

void Worker::close() {
  if (getpid() != process_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->closed = true;
  }
  queue_->changed.notify_all();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // the hook of a future has let go of the group
  } else {
    thread_.join();
  }
}

}  // namespace mscclc::torch_adapter
