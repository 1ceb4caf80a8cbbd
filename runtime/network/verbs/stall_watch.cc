#include "runtime/network/verbs/stall_watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <utility>

namespace mscclc::verbs {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

}  // namespace

bool StallWatch::open(net::Reactor& reactor, std::function<void()> handler) {
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) return false;
  token_ = reactor.add(timer_, EPOLLIN, [this, handler = std::move(handler)](uint32_t) {
    uint64_t times = 0;
    if (::read(timer_.get(), &times, sizeof times) == sizeof times) handler();
  });
  return token_ != 0;
}

void StallWatch::close(net::Reactor& reactor) {
  if (token_ != 0) reactor.remove(timer_, token_);
  token_ = 0;
  timer_.reset();
}

void StallWatch::start() {
  if (!runs_ && timer_.valid()) run(true);
}

bool StallWatch::is_dead(bool pending, uint64_t first) {
  if (!pending) run(false);
  if (!pending || first != first_) {
    first_ = first;
    quiet_ = {};
    return false;
  }
  quiet_ += kLookEvery;
  return quiet_ >= patience_;
}

void StallWatch::run(bool on) {
  runs_ = on;
  itimerspec times{};
  times.it_interval.tv_sec = times.it_value.tv_sec = on ? kLookEvery.count() : 0;
  ::timerfd_settime(timer_.get(), 0, &times, nullptr);
}

}  // namespace mscclc::verbs
