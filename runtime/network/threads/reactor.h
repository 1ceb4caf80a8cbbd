// One thread that waits for many descriptors at once (epoll), and calls what waits for one. It
// sleeps while nothing comes, at once or after a while.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/network/threads/lane_thread.h"
#include "runtime/network/threads/spin_lock.h"
#include "runtime/support/fd.h"

namespace mscclc::net {

class Reactor {
 public:
  /// Called with the events of epoll that have come. May add and remove handlers, itself too.
  using Handler = std::function<void(uint32_t events)>;
  /// Stands for a descriptor with its handler; never used again. 0: none.
  using Token = uint64_t;

  /// `awake`: how long nothing comes before it sleeps. `begin`: empty, or what its thread is to do
  /// first. nullptr: reported (lane-failed, no-thread, or what `begin` reports).
  [[nodiscard]] static std::unique_ptr<Reactor> start(std::chrono::microseconds awake,
                                                      const BeginThread& begin,
                                                      Diagnostics& diagnostics);
  /// REQUIRES: not called by a handler.
  ~Reactor();

  /// While it lives no handler runs. Handlers must not ask for it: they run under it.
  [[nodiscard]] std::unique_lock<std::mutex> hold();
  /// The same for threads that do the work of handlers: handlers do not let them go first.
  [[nodiscard]] std::unique_lock<std::mutex> take_turn() { return spin_lock(mutex_); }
  /// Waits for `events` of a descriptor, which must stay open until it is removed. 0: the system
  /// refuses; errno says why. `without_memory`: done where the handler finds no memory
  /// (std::bad_alloc), as insist() does; empty: the handler is called again when there is more.
  /// REQUIRES: hold().
  [[nodiscard]] Token add(const Fd& fd, uint32_t events, Handler handler,
                          std::function<void()> without_memory = {});
  /// REQUIRES: hold().
  void remove(const Fd& fd, Token token);
  /// Waits for other events from now on. From any thread, while the descriptor is not removed.
  void change(const Fd& fd, Token token, uint32_t events) const;

 private:
  struct Watched {
    Handler handler;
    std::function<void()> without_memory;
  };

  explicit Reactor(std::chrono::microseconds awake) : awake_(awake) {}
  void run();
  int wait(epoll_event* events, std::chrono::steady_clock::time_point& moved) const;
  void dispatch(Token token, uint32_t events);

  const std::chrono::microseconds awake_;
  Fd epoll_, waker_;
  std::mutex mutex_;
  std::atomic<uint32_t> wanted_{0};  ///< threads in hold()
  std::atomic<bool> stop_{false};
  Token next_ = 1;
  std::map<Token, std::shared_ptr<const Watched>> watched_;
  std::thread thread_;
};

}  // namespace mscclc::net
