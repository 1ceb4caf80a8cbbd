// Runs fibers one at a time, in an order that a seed decides and nothing else.
//
// A fiber that must wait is parked with its condition, a comparison with a place in memory, which
// the scheduler looks at without waking it. When no fiber can move, the run hangs: that is a
// deadlock, not a timeout.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "executor/cpu/dice.h"
#include "executor/cpu/fiber.h"

namespace mscclc {

/// What a parked fiber waits for: looked at very often.
struct Wait {
  /// last: over when no other fiber can move, the least `value` first.
  enum class Test : uint8_t { none, above64, differs64, equal64, differs32, equal32, last };
  Test test = Test::none;
  const void* address = nullptr;
  uint64_t value = 0;

  bool over() const {
    if (test == Test::none) return true;
    if (test == Test::last) return false;
    uint64_t seen = 0;
    const bool wide = test == Test::above64 || test == Test::differs64 || test == Test::equal64;
    std::memcpy(&seen, address, wide ? 8 : 4);
    if (test == Test::above64) return seen > value;
    const bool equal = seen == value;
    return test == Test::equal64 || test == Test::equal32 ? equal : !equal;
  }
};

class Scheduler {
 public:
  /// Seed 0: fibers run in the order of their making, each until it must wait. Others: one of
  /// several kinds of random schedule.
  explicit Scheduler(FiberPool& fibers, uint64_t seed);
  ~Scheduler();

  /// Adds a fiber. `service`: it serves others and never ends (a proxy). False: out of memory.
  /// REQUIRES: called on no fiber.
  bool spawn(Fiber::Function entry, void* argument, bool service);
  /// Runs until all but services have ended and the services have nothing to do. False: it hangs.
  bool run();

  /// Parks the running fiber until `wait` is over. REQUIRES: called on a fiber.
  void wait(const Wait& wait);
  /// Lets others run.
  void yield() { wait({}); }
  /// Goes on only when no other fiber can move; of several that linger the lowest `order` first.
  void linger(uint64_t order) { wait({Wait::Test::last, nullptr, order}); }
  Dice& dice() { return dice_; }
  /// True if fibers should hand over in the middle of ops, too.
  bool shuffles() const { return style_ != Style::in_order; }

 private:
  enum class Style : uint8_t { in_order, uniform, priorities, late_services };
  /// Small, and by value in `live_`: what looks for one that can move reads many.
  struct Task {
    Wait wait = {};
    Fiber* fiber = nullptr;
    bool service = false;
  };

  uint32_t pick();
  uint32_t pick_ready();
  uint32_t pick_lingering() const;
  uint32_t pick_from(uint32_t start, bool services);
  uint32_t pick_highest();
  void resume(uint32_t index);

  FiberPool& fibers_;
  Dice dice_;
  Style style_ = Style::in_order;
  std::vector<Fiber*> taken_;  ///< all, to be given back
  std::vector<Task> live_;     ///< in running order
  Task* current_ = nullptr;    ///< of `live_`, which does not change while it runs
  uint32_t cursor_ = 0;
  uint32_t running_ = 0;  ///< live tasks that are no services
};

}  // namespace mscclc
