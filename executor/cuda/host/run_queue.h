// The threads of grids that can go on, and those that poll: which of them runs next.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "executor/cpu/dice.h"
#include "executor/cuda/host/launches.h"

namespace mscclc::cuda::host {

class RunQueue {
 public:
  /// In order; or those that `dice` pick, or mostly those of the highest priority.
  enum class Order : uint8_t { in_turn, random, by_priority };
  void set_order(Order order) { order_ = order; }

  /// Is no thread ready?
  bool empty() const { return ready_.empty(); }
  void add(Thread& thread);
  /// A thread whose poll was in vain.
  void add_polling(Thread& thread) { polling_.push_back(&thread); }
  /// The thread that runs next. REQUIRES: not empty().
  Thread& take(Dice& dice);
  /// Threads poll again for which something has changed since they did, by Gpu::changes(); `all`:
  /// also the others. True if any does.
  bool wake_pollers(uint64_t changes, bool all);
  /// Lets some thread poll again.
  void wake_one(Dice& dice);
  void clear();

 private:
  Order order_ = Order::in_turn;
  std::deque<Thread*> ready_;
  std::vector<Thread*> polling_;
};

}  // namespace mscclc::cuda::host
