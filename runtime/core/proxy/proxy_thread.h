// The thread that serves queues of port channels: one for each device in a process, for all plans
// of all communicators. They have their turns one after the other, and a turn never waits: so a
// queue whose peer takes nothing, that ends or that has failed holds up no other.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/api/device.h"

namespace mscclc {

/// Thread safety: any thread.
class ProxyThread {
 public:
  /// The copies of a call take milliseconds; the thread should still be awake when the next call
  /// posts its own.
  static constexpr std::chrono::milliseconds kAwake{10};

  enum class Progress : uint8_t {
    moved,  ///< something was done
    idle,   ///< there was nothing to do, or no room to do it
    over    ///< there is to be no other turn
  };

  class Served {
   public:
    virtual ~Served() = default;
    /// Does some of its work, and waits for nothing; throws nothing. Called only by the thread.
    virtual Progress serve() = 0;
    /// The thread has let it go: it may be destroyed.
    bool is_over() const { return over_.load(std::memory_order_acquire); }

   private:
    friend class ProxyThread;
    std::atomic<bool> over_{false};
  };

  /// The thread of a device: of all that have the same Device::room(), or only of this one, if it
  /// has none. Started if it does not run; it ends with the last reference. nullptr: reported
  /// (no-thread).
  [[nodiscard]] static std::shared_ptr<ProxyThread> of(const Device& device,
                                                       Diagnostics& diagnostics);
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;
  /// REQUIRES: all that was served is over.
  ~ProxyThread();

  /// `served` has turns from now on, until it is over. It must be kept until then.
  void add(Served& served);

 private:
  ProxyThread() = default;
  void run();
  /// Gives all a turn. False: nothing has moved.
  bool serve_all();
  void take_new();

  std::mutex mutex_;
  std::vector<Served*> new_;          ///< what the thread has not taken yet
  std::atomic<bool> has_new_{false};  ///< so that it need not lock to see that there is nothing
  std::atomic<bool> stop_{false};
  std::vector<Served*> served_;  ///< the thread's own
  std::thread thread_;
};

}  // namespace mscclc
