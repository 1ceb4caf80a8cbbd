#include "runtime/cuda/early_launches.h"

namespace mscclc::cuda {
namespace {

// cudaStreamLegacy is the stream of handle 0; cudaStreamPerThread stands for many.
StreamHandle known_as(StreamHandle stream) {
  return stream == reinterpret_cast<StreamHandle>(uintptr_t{1}) ? nullptr : stream;
}
bool stands_for_many(StreamHandle stream) {
  return stream == reinterpret_cast<StreamHandle>(uintptr_t{2});
}

}  // namespace

EarlyLaunches& EarlyLaunches::of_process() {
  static EarlyLaunches all;
  return all;
}

// What is captured runs behind what was captured before, not behind what was launched since: the
// two are kept apart. A small launch counts for both, which needs no question to the driver.
bool EarlyLaunches::note(int ordinal, StreamHandle stream, bool small,
                         const std::function<bool()>& capturing) {
  if (stands_for_many(stream)) return small;
  const bool captured = !small && capturing();
  const std::lock_guard lock(mutex_);
  SmallAhead& ahead = ahead_[{ordinal, known_as(stream)}];
  if (small) {
    ahead = {true, true};
    return true;
  }
  return !std::exchange(captured ? ahead.captured : ahead.run, false);
}

void EarlyLaunches::forget(int ordinal, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  ahead_.erase({ordinal, known_as(stream)});
}

}  // namespace mscclc::cuda
