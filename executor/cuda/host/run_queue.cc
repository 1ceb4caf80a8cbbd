#include "executor/cuda/host/run_queue.h"

#include <utility>

namespace mscclc::cuda::host {
namespace {

constexpr uint32_t kMaxCompared = 16;  // threads, for the one to run next

}  // namespace

void RunQueue::add(Thread& thread) {
  thread.state = Thread::State::ready;
  ready_.push_back(&thread);
}

Thread& RunQueue::take(Dice& dice) {
  size_t chosen = 0;
  if (order_ == Order::by_priority && dice.below(64) != 0) {
    // The first of some: there may be thousands.
    const auto count = static_cast<uint32_t>(ready_.size());
    const uint32_t begin = count > kMaxCompared ? dice.below(count - kMaxCompared) : 0;
    chosen = begin;
    for (size_t i = begin; i < count && i < begin + kMaxCompared; ++i) {
      if (ready_[i]->priority > ready_[chosen]->priority) chosen = i;
    }
    if (dice.below(16) == 0) ready_[chosen]->priority = dice.next();
  } else if (order_ != Order::in_turn) {
    chosen = dice.below(static_cast<uint32_t>(ready_.size()));
  }
  std::swap(ready_[chosen], ready_.front());
  Thread& thread = *ready_.front();
  ready_.pop_front();
  return thread;
}

bool RunQueue::wake_pollers(uint64_t changes, bool all) {
  const size_t before = ready_.size();
  std::erase_if(polling_, [&](Thread* thread) {
    if (!all && thread->seen == changes) return false;
    add(*thread);
    return true;
  });
  return ready_.size() != before;
}

void RunQueue::wake_one(Dice& dice) {
  if (polling_.empty()) return;
  Thread*& chosen = polling_[dice.below(static_cast<uint32_t>(polling_.size()))];
  add(*chosen);
  chosen = polling_.back();
  polling_.pop_back();
}

void RunQueue::clear() {
  ready_.clear();
  polling_.clear();
}

}  // namespace mscclc::cuda::host
