// The sockets and other descriptors for which the hub's thread waits, each with its key.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>
#include <utility>

#include "runtime/support/fd.h"

namespace mscclc {

/// Keys: the first listener's, those of others follow it; the first client's, those of others
/// follow it.
inline constexpr uint64_t kWakerKey = 0, kListenerKey = 1, kFirstKey = 64;
/// Of the end of a process, whose number follows.
inline constexpr uint64_t kProcessKey = uint64_t{1} << 63;

/// Thread safety: one thread at a time.
class EpollSet {
 public:
  /// `epoll`: of epoll_create1(), valid.
  explicit EpollSet(Fd epoll) : epoll_(std::move(epoll)) {}

  void add(int fd, uint64_t key, uint32_t events) { control(EPOLL_CTL_ADD, fd, key, events); }
  void change(int fd, uint64_t key, uint32_t events) { control(EPOLL_CTL_MOD, fd, key, events); }
  void remove(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }
  /// How many of `events` have come; waits for the first, at most so long.
  int wait(std::span<epoll_event> events, int most_ms) {
    return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), most_ms);
  }

 private:
  void control(int how, int fd, uint64_t key, uint32_t events) {
    epoll_event event{.events = events, .data = {.u64 = key}};
    ::epoll_ctl(epoll_.get(), how, fd, &event);
  }

  const Fd epoll_;
};

}  // namespace mscclc
