#include "runtime/support/observe/watchdog.h"

#include <new>

#include "runtime/support/process/per_process.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {

/// The watchdog of a process: it ends with the last watch, so that none is left when main() ends.
struct Watchdog::OfProcess {
  std::mutex mutex;
  std::weak_ptr<Watchdog> dog;
};

std::unique_ptr<Watchdog::Watch> Watchdog::watch(std::function<void()> look,
                                                 Diagnostics& diagnostics) {
  auto& of_process = process_wide<OfProcess>();
  const std::lock_guard one_at_a_time(of_process.mutex);
  std::shared_ptr<Watchdog> dog = of_process.dog.lock();
  if (dog == nullptr) {
    dog.reset(new Watchdog);
    dog->thread_ = quiet_thread("mscclc-watch", [own = dog.get()] { own->serve(); });
    if (!has_started(dog->thread_, "the watchdog", diagnostics)) return nullptr;
    of_process.dog = dog;
  }
  const std::lock_guard lock(dog->mutex_);
  const uint64_t number = dog->next_++;
  dog->watched_[number] = std::move(look);
  return std::make_unique<Watch>(dog, number);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  watched_.erase(number);
}

void Watchdog::serve() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [this] { return stop_; })) {
    for (const auto& [number, look] : watched_) {
      try {
        look();
      } catch (const std::bad_alloc&) {  // it asks again
      }
    }
  }
}

}  // namespace mscclc
