#include "runtime/network/threads/reactor.h"

#include <cerrno>
#include <new>

#include "runtime/support/failed_call.h"
#include "runtime/support/process/insist.h"

namespace mscclc::net {
namespace {

constexpr Reactor::Token kWaker = 0;
constexpr int kMaxAtOnce = 64;

}  // namespace

std::unique_ptr<Reactor> Reactor::start(std::chrono::microseconds awake, const BeginThread& begin,
                                        Diagnostics& diagnostics) {
  std::unique_ptr<Reactor> reactor(new Reactor(awake));
  reactor->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (reactor->epoll_.valid()) reactor->waker_ = make_waker();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWaker;
  if (!reactor->waker_.valid() ||
      ::epoll_ctl(reactor->epoll_.get(), EPOLL_CTL_ADD, reactor->waker_.get(), &event) != 0) {
    report_failed_call(diagnostics, "lane-failed", "cannot wait for sockets");
    return nullptr;
  }
  reactor->thread_ = begin_lane_thread(
      "mscclc-net", begin, [r = reactor.get()] { r->run(); }, diagnostics);
  return reactor->thread_.joinable() ? std::move(reactor) : nullptr;
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

Reactor::Token Reactor::add(const Fd& fd, uint32_t events, Handler handler,
                            std::function<void()> without_memory) {
  auto watched = std::make_shared<const Watched>(std::move(handler), std::move(without_memory));
  const auto at = watched_.emplace(next_, std::move(watched)).first;
  epoll_event event{};
  event.events = events;
  event.data.u64 = next_;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    const int error = errno;
    watched_.erase(at);
    errno = error;
    return 0;
  }
  return next_++;
}

void Reactor::remove(const Fd& fd, Token token) {
  if (watched_.erase(token) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

void Reactor::change(const Fd& fd, Token token, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd.get(), &event);
}

// What a handler before it has removed is not called any more: its token is gone.
void Reactor::dispatch(Token token, uint32_t events) {
  const auto found = watched_.find(token);
  if (found == watched_.end()) return;
  const std::shared_ptr<const Watched> watched = found->second;  // may remove itself
  try {
    watched->handler(events);
  } catch (const std::bad_alloc&) {
    if (watched->without_memory) insist(watched->without_memory);
  }
}

/// While something has moved lately it asks again and again: to be woken takes longer than most of
/// what comes over a lane.
int Reactor::wait(epoll_event* events, std::chrono::steady_clock::time_point& moved) const {
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events, kMaxAtOnce, 0);
    const auto now = std::chrono::steady_clock::now();
    if (count != 0) {
      moved = now;
      return count;
    }
    if (now - moved < awake_ && !stop_) continue;
    const int slept = ::epoll_wait(epoll_.get(), events, kMaxAtOnce, -1);
    moved = std::chrono::steady_clock::now();
    return slept;
  }
}

void Reactor::run() {
  epoll_event events[kMaxAtOnce];
  auto moved = std::chrono::steady_clock::now();
  while (!stop_) {
    const int count = awake_.count() > 0 ? wait(events, moved)
                                         : ::epoll_wait(epoll_.get(), events, kMaxAtOnce, -1);
    // A mutex is not fair: without this a thread that wants it would wait as long as data comes.
    while (wanted_ > 0) std::this_thread::yield();
    const auto lock = spin_lock(mutex_);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 != kWaker) dispatch(events[i].data.u64, events[i].events);
    }
  }
}

}  // namespace mscclc::net
