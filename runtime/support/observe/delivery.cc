#include "runtime/support/observe/delivery.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/support/process/quiet_thread.h"

namespace mscclc {

std::shared_ptr<Delivery> Delivery::start(LogSink sink, Diagnostics& diagnostics) {
  std::shared_ptr<Delivery> made(new Delivery(std::move(sink)));
  // It may have to wait for `thread_`, which the sink asks for.
  const std::lock_guard lock(made->mutex_);
  made->thread_ = quiet_thread(
      "mscclc-log", [made] { made->serve(); }, [made] { made->end(); });
  return has_started(made->thread_, "the callback of the log", diagnostics) ? made : nullptr;
}

void Delivery::take(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMaxLines) {
      ++lost_;
      return;
    }
    lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

std::deque<std::string> Delivery::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  const bool inside = is_inside();
  std::deque<std::string> left;
  if (inside) {
    left.swap(lines_);
    if (lost_ > 0) left.push_back(next());
  }
  lock.unlock();
  changed_.notify_all();
  inside ? thread_.detach() : thread_.join();
  return left;
}

void Delivery::stop_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
  const bool ended = !is_inside() && changed_.wait_for(lock, limit, [this] { return ended_; });
  lines_.clear();
  lost_ = 0;
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
}

std::string Delivery::next() {
  if (!lines_.empty()) {
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }
  return fmt::format("mscclc: {} lines of the log are lost: its callback takes too long",
                     std::exchange(lost_, 0));
}

void Delivery::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !lines_.empty(); });
    if (lines_.empty() && lost_ == 0) break;
    const std::string line = next();
    lock.unlock();
    sink_(line);
    lock.lock();
  }
  lock.unlock();
  end();
}

void Delivery::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace mscclc
