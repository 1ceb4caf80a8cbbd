#include "executor/simulator/machine/late_memory.h"

#include <algorithm>
#include <utility>

namespace mscclc {
namespace {

bool conflict(std::span<const Touch> a, std::span<const Touch> b) {
  for (const Touch& x : a) {
    for (const Touch& y : b) {
      if (x.conflicts(y)) return true;
    }
  }
  return false;
}

bool precedes(const LateAccess& a, const LateAccess& b) {
  return b.before.knows(a.process, a.count) && conflict(a.touches, b.touches);
}

}  // namespace

void LateMemory::add(LateAccess access) {
  ++(access.hold == LateAccess::kFree ? free_ : held_);
  list_.push_back(std::move(access));
}

// What an access needs was made before it: one walk from the newest to the oldest finds all. There
// may be very many accesses, of which few are done at a time.
void LateMemory::perform(const std::vector<bool>& chosen) {
  std::vector<size_t> done;  // newest first
  for (size_t i = list_.size(); i-- > 0;) {
    const bool needed = chosen[i] || std::ranges::any_of(done, [&](size_t j) {
                          return precedes(list_[i], list_[j]);
                        });
    if (needed) done.push_back(i);
  }
  if (done.empty()) return;
  std::vector<LateAccess> now;
  size_t kept = done.back();
  for (size_t i = kept; i < list_.size(); ++i) {
    if (!done.empty() && done.back() == i) {
      done.pop_back();
      now.push_back(std::move(list_[i]));
    } else {
      list_[kept++] = std::move(list_[i]);
    }
  }
  list_.resize(kept);
  for (const LateAccess& access : now) {
    --(access.hold == LateAccess::kFree ? free_ : held_);
    access.perform();
  }
}

void LateMemory::settle(const Clock& clock, std::span<const Touch> touches) {
  std::vector<bool> chosen(list_.size());
  bool any = false;
  for (size_t i = 0; i < list_.size(); ++i) {
    chosen[i] =
        clock.knows(list_[i].process, list_[i].count) && conflict(list_[i].touches, touches);
    any |= chosen[i];
  }
  if (any) perform(chosen);
}

void LateMemory::settle(const Clock& clock) {
  std::vector<bool> chosen(list_.size());
  for (size_t i = 0; i < list_.size(); ++i) {
    chosen[i] = clock.knows(list_[i].process, list_[i].count);
  }
  perform(chosen);
}

void LateMemory::settle_process(uint32_t process) {
  std::vector<bool> chosen(list_.size());
  for (size_t i = 0; i < list_.size(); ++i) chosen[i] = list_[i].process == process;
  perform(chosen);
}

uint32_t LateMemory::pending(uint32_t process) const {
  return static_cast<uint32_t>(
      std::count_if(list_.begin(), list_.end(),
                    [&](const LateAccess& access) { return access.process == process; }));
}

uint64_t LateMemory::held(uint32_t process) const {
  uint64_t order = 0;
  for (const LateAccess& access : list_) {
    if (access.process == process) order = std::max(order, access.hold);
  }
  return order;
}

// A function of its own: what a fiber has on its stack while it waits is lost if the run is given
// up.
void LateMemory::perform_any_free(Dice& dice) {
  std::vector<size_t> candidates;
  for (size_t i = 0; i < list_.size(); ++i) {
    if (list_[i].hold == LateAccess::kFree) candidates.push_back(i);
  }
  std::vector<bool> chosen(list_.size());
  chosen[candidates[dice.below(static_cast<uint32_t>(candidates.size()))]] = true;
  perform(chosen);
}

void LateMemory::serve_free(Scheduler& scheduler) {
  for (;;) {
    scheduler.wait({Wait::Test::above64, &free_, 0});
    perform_any_free(scheduler.dice());
    scheduler.yield();
  }
}

const LateAccess* LateMemory::first_held() const {
  const LateAccess* first = nullptr;
  for (const LateAccess& access : list_) {
    if (access.hold == LateAccess::kFree) continue;
    if (first == nullptr || access.hold < first->hold) first = &access;
  }
  return first;
}

void LateMemory::serve_held(Scheduler& scheduler) {
  for (;;) {
    scheduler.wait({Wait::Test::above64, &held_, 0});
    scheduler.linger(first_held()->hold);
    const LateAccess* first = first_held();
    if (first == nullptr) continue;  // forced meanwhile
    std::vector<bool> chosen(list_.size());
    chosen[static_cast<size_t>(first - list_.data())] = true;
    perform(chosen);
  }
}

}  // namespace mscclc
