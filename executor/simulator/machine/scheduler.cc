#include "executor/simulator/machine/scheduler.h"

#include <utility>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

constexpr uint32_t kNoTask = 0xffffffffu;

}  // namespace

Scheduler::Scheduler(FiberPool& fibers, uint64_t seed) : fibers_(fibers), dice_(seed) {
  constexpr Style kStyles[] = {Style::uniform, Style::priorities, Style::late_services};
  if (seed != 0) style_ = kStyles[seed % 3];
}

Scheduler::~Scheduler() {
  for (Fiber* fiber : taken_) fibers_.give(fiber);
}

bool Scheduler::spawn(Fiber::Function entry, void* argument, bool service) {
  precondition(current_ == nullptr);
  Fiber* fiber = fibers_.take();
  if (fiber == nullptr) return false;
  taken_.push_back(fiber);
  fiber->start(entry, argument);
  live_.push_back({.fiber = fiber, .service = service});
  if (shuffles()) std::swap(live_.back(), live_[dice_.below(static_cast<uint32_t>(live_.size()))]);
  running_ += service ? 0 : 1;
  return true;
}

// The first runnable task from `start` on, round the list; services only, or all others, if asked.
uint32_t Scheduler::pick_from(uint32_t start, bool services) {
  const auto n = static_cast<uint32_t>(live_.size());
  const bool apart = style_ == Style::late_services;
  for (uint32_t k = 0, i = start; k < n; ++k, i = i + 1 == n ? 0 : i + 1) {
    if (apart && live_[i].service != services) continue;
    if (live_[i].wait.over()) return i;
  }
  return kNoTask;
}

// The first runnable task of the list, whose order is that of priorities. Now and then it changes
// places with another, so that a rank may be far ahead of the others, but not always the same.
uint32_t Scheduler::pick_highest() {
  const uint32_t best = pick_from(0, false);
  if (best == kNoTask || dice_.below(16) != 0) return best;
  const uint32_t other = dice_.below(static_cast<uint32_t>(live_.size()));
  std::swap(live_[best], live_[other]);
  return other;
}

uint32_t Scheduler::pick_lingering() const {
  uint32_t found = kNoTask;
  for (uint32_t i = 0; i < live_.size(); ++i) {
    const Wait& wait = live_[i].wait;
    if (wait.test != Wait::Test::last) continue;
    if (found == kNoTask || wait.value < live_[found].wait.value) found = i;
  }
  return found;
}

uint32_t Scheduler::pick() {
  const uint32_t found = pick_ready();
  return found != kNoTask ? found : pick_lingering();
}

uint32_t Scheduler::pick_ready() {
  const auto n = static_cast<uint32_t>(live_.size());
  if (n == 0) return kNoTask;
  switch (style_) {
    case Style::in_order:
      return pick_from(cursor_ < n ? cursor_ : 0, false);
    case Style::uniform:
      return pick_from(dice_.below(n), false);
    case Style::priorities:
      return pick_highest();
    case Style::late_services: {
      const uint32_t found = pick_from(dice_.below(n), false);
      return found != kNoTask ? found : pick_from(dice_.below(n), true);
    }
  }
  return kNoTask;
}

void Scheduler::resume(uint32_t index) {
  Task& task = live_[index];
  task.wait = {};
  current_ = &task;
  task.fiber->resume();
  current_ = nullptr;
  cursor_ = index + 1;
  if (!task.fiber->ended()) return;
  running_ -= task.service ? 0 : 1;
  live_[index] = live_.back();
  live_.pop_back();
  cursor_ = index;
}

bool Scheduler::run() {
  for (uint32_t index = pick(); index != kNoTask; index = pick()) resume(index);
  return running_ == 0;
}

void Scheduler::wait(const Wait& wait) {
  precondition(current_ != nullptr);
  current_->wait = wait;
  current_->fiber->suspend();
}

}  // namespace mscclc
