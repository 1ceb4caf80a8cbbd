// Threads that carry the bytes of long puts, so that several connections of a lane are written, or
// read, at once: the kernel's copying is what takes time, and a thread copies for one connection.
#pragma once

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

#include "runtime/net/threads/lane_thread.h"

namespace mscclc::net {

/// Thread safety: give() from any thread.
class Hands {
 public:
  /// Work for fewer bytes is not worth handing over.
  static constexpr uint64_t kLeastBytes = 24 << 10;
  /// How long a hand waits for more bytes of a connection, or for room, before it gives it back.
  static constexpr std::chrono::microseconds kPatience{50};

  /// `awake`: how long nothing is given before a thread sleeps. nullptr: reported (no-thread, or
  /// what `begin` reports).
  [[nodiscard]] static std::unique_ptr<Hands> start(uint32_t count, std::chrono::microseconds awake,
                                                    const BeginThread& begin,
                                                    Diagnostics& diagnostics);
  /// Waits until all that was given has been done.
  ~Hands();

  /// The thread that `number` falls to does `work`, after what it was given before.
  void give(uint64_t number, std::function<void()> work);

 private:
  struct Hand {
    std::mutex mutex;
    std::condition_variable news;
    std::deque<std::function<void()>> work;
    std::atomic<uint64_t> given{0};
    bool stop = false;
    std::thread thread;
  };
  explicit Hands(std::chrono::microseconds awake) : awake_(awake) {}
  void run(Hand& hand) const;
  void await_work(const Hand& hand, uint64_t done) const;

  const std::chrono::microseconds awake_;
  std::vector<std::unique_ptr<Hand>> hands_;
};

}  // namespace mscclc::net
