#include "runtime/support/observe/watchdog.h"

#include <new>

#include "runtime/support/process/per_process.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

constexpr std::chrono::milliseconds kHastyPeriod{1};

}  // namespace

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
    const std::lock_guard lock(resting_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  watched_.erase(number);
}

// The callers may hold what a look waits for, so it takes only the mutex of the rest.
void Watchdog::hasten() {
  {
    const std::lock_guard lock(resting_);
    haste_until_ = Clock::now() + kHaste;
    new_haste_ = true;
  }
  changed_.notify_all();
}

std::function<void()> Watchdog::Watch::haste() const {
  return [weak = std::weak_ptr(dog_)] {
    if (const auto dog = weak.lock()) dog->hasten();
  };
}

bool Watchdog::rest() {
  std::unique_lock lock(resting_);
  changed_.wait_for(lock, Clock::now() < haste_until_ ? kHastyPeriod : kPeriod,
                    [this] { return stop_ || new_haste_; });
  new_haste_ = false;
  return !stop_;
}

void Watchdog::serve() {
  while (rest()) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, look] : watched_) {
      try {
        look();
      } catch (const std::bad_alloc&) {  // it asks again
      }
    }
  }
}

}  // namespace mscclc
