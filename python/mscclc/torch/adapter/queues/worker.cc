#include "python/mscclc/torch/adapter/queues/worker.h"

#include <algorithm>
#include <system_error>

#include "python/mscclc/torch/adapter/process_state.h"

namespace mscclc::torch_adapter {

Worker::Worker() { ProcessState::get().workers.add(queue_); }

void Worker::All::add(const std::shared_ptr<Queue>& queue) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queues_, [](const std::weak_ptr<Queue>& one) { return one.expired(); });
  queues_.push_back(queue);
  if (process_ == 0) process_ = getpid();
}

bool Worker::post(Task task) {
  if (getpid() != queue_->process) return false;
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->closed) return false;
    if (!queue_->busy) need_thread(queue_);  // else the busy thread does so
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

void Worker::close(Queue& queue) {
  if (getpid() != queue.process) {
    for (std::thread& thread : queue.threads) thread.detach();
    queue.threads.clear();
    return;
  }
  std::unique_lock lock(queue.mutex);
  queue.closed = true;
  queue.changed.notify_all();
  // A task, or a hook of its future, has let go of the group: it cannot wait for itself, nor for
  // threads that wait for it. They do what was posted, and All::close() waits for them.
  const auto is_own = [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  };
  if (std::any_of(queue.threads.begin(), queue.threads.end(), is_own)) return;
  while (!queue.threads.empty()) {  // one may start another one
    std::thread thread = std::move(queue.threads.back());
    queue.threads.pop_back();
    lock.unlock();
    thread.join();
    lock.lock();
  }
}

Worker::Queue::~Queue() {
  // Threads keep their queue, so all have ended, except the one that lets go of it last.
  for (std::thread& thread : threads) thread.detach();
}

void Worker::All::close() {
  if (getpid() != process_) return;
  std::vector<std::shared_ptr<Queue>> queues;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : queues_) queues.push_back(one.lock());
  }
  for (const auto& queue : queues) {
    if (queue != nullptr) Worker::close(*queue);
  }
}

}  // namespace mscclc::torch_adapter
