// Which launches may begin before the call ahead of them on their stream has ended.
//
// A call that is small lets the next one begin at once, others when they know that all they depend
// on has begun (executor/early_launch.h). Behind a small one only small ones may begin early:
// otherwise calls of a few streams could fill one GPU, those of others another, and none would end.
// A small call takes a quarter of a GPU at most, so it takes four streams to fill two GPUs so, two
// calls of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/device.h"

namespace mscclc::cuda {

inline bool is_small(const device::LaunchPlan& plan) { return plan.blocks <= plan.most_blocks / 4; }

/// What was launched on the streams of the process, by any communicator. Thread-safe.
class EarlyLaunches {
 public:
  static EarlyLaunches& of_process();

  /// Notes a launch on a stream of device `ordinal`; true: it may begin early. `capturing` says
  /// whether a capture takes it. A stream handle may be used again for another stream: that is
  /// taken for more calls of the first.
  [[nodiscard]] bool note(int ordinal, StreamHandle stream, bool small,
                          const std::function<bool()>& capturing);
  /// A stream has been destroyed, so that a process that makes streams without end keeps none of
  /// them. Those that others destroy are kept: their handles come again.
  void forget(int ordinal, StreamHandle stream);

 private:
  /// Was the last launch small, of those that ran and of those that were captured?
  struct SmallAhead {
    bool run = false, captured = false;
  };

  std::mutex mutex_;
  std::map<std::pair<int, StreamHandle>, SmallAhead> ahead_;  ///< by device and stream
};

}  // namespace mscclc::cuda
