// A device for benchmarks of what the runtime does before and after the device's own part of a
// call: the host, but it takes programs as a GPU does, and does nothing with them.
#pragma once

#include <algorithm>
#include <ctime>

#include "runtime/api/device.h"
#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc::testing {

class ProgramTaker : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool carries_programs() const override { return true; }
  bool copy(void*, const void*, uint64_t, StreamHandle, Diagnostics&) override { return true; }
  std::optional<uint32_t> fits(const device::LaunchPlan& plan, Diagnostics&) override {
    return plan.blocks;
  }
  bool launch(const device::LaunchPlan&, StreamHandle, Diagnostics&) override { return true; }
  bool synchronize(StreamHandle, Diagnostics&) override { return true; }
  bool mark(StreamHandle, std::unique_ptr<StreamMark>&, Diagnostics&) override { return false; }
  std::unique_ptr<StreamChain> chain_streams(Replays, Diagnostics&) override {
    return std::make_unique<NoChain>();
  }
  StreamHandle create_stream(Diagnostics&) override { return this; }
  void destroy_stream(StreamHandle) override {}

 private:
  class NoChain final : public StreamChain {
   public:
    bool follow(StreamHandle, Diagnostics&) override { return true; }
    bool put_last(StreamHandle, Diagnostics&) override { return true; }
  };
};

/// Processor time of this thread, in microseconds: other work on the machine does not count.
inline double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

/// The least time of several rounds, a call of fn(i), in microseconds.
template <class Fn>
double least_microseconds(Fn fn) {
  constexpr int kRounds = 7, kTimes = 500;
  double best = 1e30;
  for (int r = 0; r < kRounds; ++r) {
    const double begin = thread_microseconds();
    for (int i = 0; i < kTimes; ++i) fn(i);
    best = std::min(best, (thread_microseconds() - begin) / kTimes);
  }
  return best;
}

}  // namespace mscclc::testing
