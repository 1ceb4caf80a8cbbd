// Accesses that have not been done yet, though the strand that makes them has gone on.
//
// Which of them knows of what is kept in vector clocks over all processes (strands and proxies): a
// signal hands on the sender's clock, a wait joins it. An access of a process is done at the latest
// when another access touches the same bytes whose process knows of it: that is the only force
// here, and it is what the PTX model's causality order gives. Until then it may be done at any
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/simulator/machine/clock.h"
#include "executor/simulator/machine/scheduler.h"

namespace mscclc {

/// Bytes that an access touches.
struct Touch {
  const uint8_t* begin;
  uint64_t bytes;
  bool write;
  bool packets = false;  ///< whole units, each with its flag
  bool empties = false;  ///< ... that are put back to hold sentinels
  bool conflicts(const Touch& other) const {
    return (write || other.write) && begin < other.begin + other.bytes &&
           other.begin < begin + bytes;
  }
};

struct LateAccess {
  static constexpr uint64_t kFree = 0;  ///< done whenever chance has it
  uint32_t process = 0, count = 0;      ///< the op that makes it
  uint64_t hold = kFree;                ///< else: order among what is held
  Clock before;                         ///< what its process knew
  std::vector<Touch> touches;
  std::function<void()> perform;
};

class LateMemory {
 public:
  void add(LateAccess access);
  /// Does what `clock` knows of and these bytes have to do with: they are going to be touched.
  void settle(const Clock& clock, std::span<const Touch> touches);
  /// Does all that `clock` knows of.
  void settle(const Clock& clock);
  /// Does all accesses of a process.
  void settle_process(uint32_t process);
  uint32_t pending(uint32_t process) const;
  /// The order of an access of the process that is held; 0: there is none.
  uint64_t held(uint32_t process) const;

  /// Services: do free accesses at random, and held ones when nothing else can move. Never end.
  void serve_free(Scheduler& scheduler);
  void serve_held(Scheduler& scheduler);

 private:
  /// Does those that are `chosen`, and before them what they need, in order.
  void perform(const std::vector<bool>& chosen);
  void perform_any_free(Dice& dice);
  const LateAccess* first_held() const;

  std::vector<LateAccess> list_;  ///< in the order of making, which no force goes against
  uint64_t free_ = 0, held_ = 0;
};

}  // namespace mscclc
