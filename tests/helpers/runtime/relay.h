// For tests: a place between the two ends of TCP connections that passes on what comes, as far as
// the test lets it.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/support/address/sockets.h"

namespace mscclc::testing {

/// Listens at a port of its own, and passes on what comes to and from `to`.
class Relay {
 public:
  explicit Relay(const Address& to) : to_(to), listener_(listen_on(Address::loopback(0))) {
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stop_ = true;
    thread_.join();
  }
  Address address() const { return Address::loopback(local_port(listener_)); }

  /// Breaks all connections once it has passed on so many bytes to `to`.
  void cut_after(uint64_t bytes) { cut_after_ = bytes; }
  /// From then on passes nothing on, and breaks nothing.
  void hold_after(uint64_t bytes) { hold_after_ = bytes; }
  /// Passes on at most so many bytes at once, of connections in turn.
  void dribble(size_t bytes) { most_ = bytes; }
  uint64_t passed() const { return passed_; }

 private:
  struct Pair {
    Fd near, far;
    bool ended[2] = {};
  };

  void run() {
    while (!stop_) {
      std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        polled.push_back({pair.near.get(), static_cast<short>(pair.ended[0] ? 0 : POLLIN), 0});
        polled.push_back({pair.far.get(), static_cast<short>(pair.ended[1] ? 0 : POLLIN), 0});
      }
      ::poll(polled.data(), polled.size(), kTickMs);
      if (passed_ >= cut_after_) {
        pairs_.clear();
        continue;
      }
      if (passed_ >= hold_after_) continue;
      size_t at = 1;
      for (Pair& pair : pairs_) {
        if (polled[at++].revents != 0) pass(pair, 0);
        if (polled[at++].revents != 0) pass(pair, 1);
      }
      pairs_.remove_if([](const Pair& pair) { return pair.ended[0] && pair.ended[1]; });
      if (polled[0].revents != 0) take();
    }
  }

  void take() {
    Fd near(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    Fd far = begin_connect(to_);
    pollfd connected{far.get(), POLLOUT, 0};
    if (!near.valid() || !far.valid() || ::poll(&connected, 1, kPatienceMs) != 1) return;
    pairs_.push_back({std::move(near), std::move(far)});
  }

  void pass(Pair& pair, int way) {
    if (pair.ended[way]) return;
    const Fd& from = way == 0 ? pair.near : pair.far;
    const Fd& to = way == 0 ? pair.far : pair.near;
    const ssize_t n = ::recv(from.get(), buffer_.data(), std::min(most_.load(), buffer_.size()), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      pair.ended[way] = true;
      ::shutdown(to.get(), SHUT_WR);
      return;
    }
    for (ssize_t sent = 0; sent < n && !stop_;) {
      const ssize_t m = ::send(to.get(), buffer_.data() + sent, n - sent, MSG_NOSIGNAL);
      if (m > 0) sent += m;
      if (m < 0 && errno != EAGAIN) break;
      pollfd room{to.get(), POLLOUT, 0};
      if (m < 0) ::poll(&room, 1, kTickMs);
    }
    if (way == 0) passed_ += static_cast<uint64_t>(n);
  }

  static constexpr int kTickMs = 5, kPatienceMs = 120'000;
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  const Address to_;
  const Fd listener_;
  std::atomic<uint64_t> cut_after_{kNever}, hold_after_{kNever}, passed_{0};
  std::atomic<size_t> most_{64 << 10};
  std::atomic<bool> stop_{false};
  std::list<Pair> pairs_;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(64 << 10);
  std::thread thread_;
};

}  // namespace mscclc::testing
