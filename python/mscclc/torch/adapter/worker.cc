#include "python/mscclc/torch/adapter/worker.h"

#include <system_error>

namespace mscclc::torch_adapter {

bool Worker::post(Task task) {
  if (getpid() != process_) return false;
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->closed) return false;
    if (!queue_->busy) need_thread(queue_);  // else who is busy does so
    queue_->waiting.push_back(std::move(task));
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

void Worker::need_thread(const std::shared_ptr<Queue>& queue) {
  if (queue->free > 0) return;
  queue->threads.emplace_back([queue] { work_through(queue); });
}

void Worker::work_through(const std::shared_ptr<Queue>& queue) {
  std::unique_lock lock(queue->mutex);
  for (;;) {
    ++queue->free;
    queue->changed.wait(lock,
                        [&] { return !queue->waiting.empty() ? !queue->busy : queue->closed; });
    --queue->free;
    if (queue->waiting.empty()) return;
    queue->busy = true;
    Rest rest;
    {
      const Task task = std::move(queue->waiting.front());
      queue->waiting.pop_front();
      lock.unlock();
      rest = task();
    }  // what it held ends here, without the lock
    lock.lock();
    queue->busy = false;
    if (rest && !queue->waiting.empty()) {
      try {
        need_thread(queue);
      } catch (const std::system_error&) {  // then this thread does it, afterwards
      }
    }
    queue->changed.notify_all();
    lock.unlock();
    if (rest) rest();
    rest = nullptr;
    lock.lock();
  }
}

void Worker::close() {
  auto& threads = queue_->threads;
  if (getpid() != process_) {
    for (std::thread& thread : threads) thread.detach();
    threads.clear();
    return;
  }
  std::unique_lock lock(queue_->mutex);
  queue_->closed = true;
  queue_->changed.notify_all();
  while (!threads.empty()) {  // one may start another one
    std::thread thread = std::move(threads.back());
    threads.pop_back();
    lock.unlock();
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();  // the hook of a future has let go of the group
    } else {
      thread.join();
    }
    lock.lock();
  }
}

}  // namespace mscclc::torch_adapter
