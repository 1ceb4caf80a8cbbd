#include "runtime/net/reactor.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <cerrno>

#include "runtime/base/quiet_thread.h"

namespace mscclc::net {
namespace {

constexpr Reactor::Token kWaker = 0;
constexpr int kMostAtOnce = 64;

}  // namespace

std::unique_ptr<Reactor> Reactor::start(Diagnostics& diagnostics) {
  std::unique_ptr<Reactor> reactor(new Reactor);
  reactor->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (reactor->epoll_.valid()) reactor->waker_ = make_waker();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWaker;
  if (!reactor->waker_.valid() ||
      ::epoll_ctl(reactor->epoll_.get(), EPOLL_CTL_ADD, reactor->waker_.get(), &event) != 0) {
    diagnostics.error("lane-failed", {},
                      fmt::format("cannot wait for sockets: {}", error_text(errno)));
    return nullptr;
  }
  reactor->thread_ = quiet_thread("mscclc-net", [r = reactor.get()] { r->run(); });
  return has_started(reactor->thread_, "lanes over sockets", diagnostics) ? std::move(reactor)
                                                                          : nullptr;
}

Reactor::~Reactor() {
  if (!thread_.joinable()) return;
  stop_ = true;
  wake(waker_);
  thread_.join();
}

std::unique_lock<std::mutex> Reactor::hold() {
  ++wanted_;
  std::unique_lock lock(mutex_);
  --wanted_;
  return lock;
}

Reactor::Token Reactor::add(const Fd& fd, uint32_t events, Handler handler) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = next_;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) return 0;
  handlers_[next_] = std::make_shared<Handler>(std::move(handler));
  return next_++;
}

void Reactor::remove(const Fd& fd, Token token) {
  if (handlers_.erase(token) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

void Reactor::change(const Fd& fd, Token token, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd.get(), &event);
}

// What a handler before it has removed is not called any more: its token is gone.
void Reactor::dispatch(Token token, uint32_t events) {
  const auto found = handlers_.find(token);
  if (found == handlers_.end()) return;
  const std::shared_ptr<Handler> handler = found->second;  // may remove itself
  (*handler)(events);
}

void Reactor::run() {
  epoll_event events[kMostAtOnce];
  while (!stop_) {
    const int count = ::epoll_wait(epoll_.get(), events, kMostAtOnce, -1);
    // A mutex is not fair: without this who wants to hold it would wait as long as data comes.
    while (wanted_ > 0) std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 != kWaker) dispatch(events[i].data.u64, events[i].events);
    }
  }
}

}  // namespace mscclc::net
