// Threads that carry the bytes of long puts, so that several connections of a lane are written, or
// read, at once: the kernel's copying is what takes time, and a thread copies for one connection.
// Any of them sends or receives, so all of them work for a rank that only does one of the two.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/network/threads/lane_thread.h"

namespace mscclc::net {

/// How many workers a rank with a GPU has by default: two for each 8 processors that the GPU has
/// for itself if all `gpus` of the machine share them alike, at most 8. They poll, as do three
/// other threads of a rank; with more of them than that its processors have nothing left for what
/// the system does for sockets.
constexpr uint32_t workers_of_gpu(uint32_t processors, size_t gpus) {
  constexpr size_t kProcessorsPerPair = 8, kMaxPairs = 4;
  const size_t sharers = std::max<size_t>(gpus, 1);
  return static_cast<uint32_t>(2 *
                               std::min(kMaxPairs, processors / (kProcessorsPerPair * sharers)));
}

/// Thread safety: give() and are_wanted() from any thread.
class CopyWorkers {
 public:
  using Clock = std::chrono::steady_clock;
  /// Puts of fewer bytes are not worth handing over.
  static constexpr uint64_t kLeastBytes = 48 << 10;
  /// How long a worker waits for more bytes of a connection, or for room, while it is not wanted.
  static constexpr std::chrono::microseconds kPatience{50};
  /// For how long it carries bytes of one connection while it is.
  static constexpr std::chrono::microseconds kTurn{200};

  /// `awake`: how long nothing is given before a thread sleeps. nullptr: reported (no-thread, or
  /// what `begin` reports).
  [[nodiscard]] static std::unique_ptr<CopyWorkers> start(uint32_t count,
                                                          std::chrono::microseconds awake,
                                                          const BeginThread& begin,
                                                          Diagnostics& diagnostics);
  /// Waits until all that was given has been done.
  ~CopyWorkers();

  /// One of the threads does `work`, which throws nothing, after others have begun with what was
  /// given before.
  void give(std::function<void()> work);
  /// Work waits for a thread.
  bool are_wanted() const { return waiting_ > 0; }

 private:
  explicit CopyWorkers(std::chrono::microseconds awake) : awake_(awake) {}
  void run();
  void await_work() const;

  const std::chrono::microseconds awake_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> work_;
  std::atomic<uint64_t> waiting_{0};  ///< work_'s size
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mscclc::net
