#include "runtime/network/sockets/socket_net.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <thread>
#include <tuple>

#include "runtime/support/address/sockets.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/failed_call.h"
#include "runtime/support/fixed_times.h"

namespace mscclc::net {
namespace {

constexpr int kAcceptAtOnce = 16;
constexpr size_t kDropAtOnce = 64 << 10;

auto age(const auto& connection) { return std::chrono::steady_clock::now() - connection.since; }

bool refuse_net(Diagnostics& diagnostics, const std::string& what) {
  report_failed_call(diagnostics, "lane-failed", "{}", what);
  return false;
}

/// Drops some of what has come. False: the other end has closed, or the connection broke.
bool discard(const Fd& socket) {
  const auto dropped = std::make_unique_for_overwrite<uint8_t[]>(kDropAtOnce);
  const ssize_t n = ::recv(socket.get(), dropped.get(), kDropAtOnce, MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

std::optional<SocketOptions> read_socket_options(Diagnostics& diagnostics, SocketOptions options) {
  const Environment environment = Environment::of_process();
  if (environment.has(Variable::MSCCLC_SOCKET_IFNAME)) {
    const auto interface = environment.text(Variable::MSCCLC_SOCKET_IFNAME, diagnostics);
    if (!interface) return std::nullopt;
    options.interface = *interface;
  }
  const auto family = socket_family(environment, diagnostics);
  if (!family) return std::nullopt;
  options.family = *family;
  const auto silence = environment.number(Variable::MSCCLC_SILENCE, diagnostics);
  if (!silence) return std::nullopt;
  options.dead = std::chrono::seconds(*silence);
  const auto read = [&](Variable variable, uint32_t& to) {
    if (!environment.has(variable)) return true;
    const auto number = environment.number(variable, diagnostics);
    if (number) to = static_cast<uint32_t>(*number);
    return number.has_value();
  };
  if (!read(Variable::MSCCLC_SOCKET_CONNECTIONS, options.connections) ||
      !read(Variable::MSCCLC_SOCKET_THREADS, options.workers)) {
    return std::nullopt;
  }
  return options;
}

std::shared_ptr<SocketNet> SocketNet::start(const SocketOptions& options,
                                            Diagnostics& diagnostics) {
  std::shared_ptr<SocketNet> net(new SocketNet(options));
  if (!net->start_threads(diagnostics) || !net->listen(diagnostics)) return nullptr;
  return net;
}

bool SocketNet::start_threads(Diagnostics& diagnostics) {
  const auto& [awake, begin] = std::tie(options_.awake, options_.begin_thread);
  if (options_.workers > 0) {
    workers_ = CopyWorkers::start(options_.workers, awake, begin, diagnostics);
    if (workers_ == nullptr) return false;
  }
  if (options_.sends_apart) {
    sends_ = Reactor::start(awake, begin, diagnostics);
    if (sends_ == nullptr) return false;
  }
  reactor_ = Reactor::start(awake, begin, diagnostics);
  return reactor_ != nullptr;
}

bool SocketNet::listen(Diagnostics& diagnostics) {
  const auto address = choose_address(options_.interface, options_.family, diagnostics);
  if (!address) return false;
  address_ = *address;
  listener_ = listen_on(address_);
  if (listener_.valid())
    timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) {
    return refuse_net(diagnostics, fmt::format("cannot listen at {} for lanes of other machines",
                                               address_.host()));
  }
  address_.set_port(local_port(listener_));
  const auto held = reactor_->hold();
  listening_ = reactor_->add(listener_, EPOLLIN, [this](uint32_t) { accept_some(); });
  const auto ticking = reactor_->add(timer_, EPOLLIN, [this](uint32_t) { tick(); });
  return (listening_ != 0 && ticking != 0) || refuse_net(diagnostics, "cannot wait for sockets");
}

// The reactor's thread uses all of this until it has ended, the pointer to the reactor, too: that
// goes first of all members, and not by reset(), which would clear the pointer before.
SocketNet::~SocketNet() {
  if (reactor_ == nullptr) return;
  const auto until = std::chrono::steady_clock::now() + kFarewell;
  const auto done = [&] {
    const auto held = reactor_->hold();
    return closing_.empty();
  };
  while (!done() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  workers_.reset();  // one that has done its work may still let go of the reactor
}

uint64_t SocketNet::announce(Taker& taker) {
  takers_[next_lane_] = &taker;
  return next_lane_++;
}

void SocketNet::close_later(Fd socket) {
  ::shutdown(socket.get(), SHUT_WR);
  closing_.push_back({std::move(socket)});
  const auto closing = std::prev(closing_.end());
  closing->token = reactor_->add(closing->socket, EPOLLIN, [this, closing](uint32_t) {
    if (discard(closing->socket)) return;
    reactor_->remove(closing->socket, closing->token);
    closing_.erase(closing);
  });
  if (closing->token == 0) closing_.erase(closing);  // the system has no room to wait for it
  set_timer();
}

// A few at once, for a process that connects all the time would keep the thread from its lanes, and
// from its end.
void SocketNet::accept_some() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    if (strangers_.size() >= most_strangers() && age(strangers_.front()) < kLeastTimeToProve) {
      return wait_for_room();
    }
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      greet(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    const int error = errno;
    if (is_out_of_descriptors(error) && forget_slow_stranger()) continue;
    pause();  // it would ask again and again
    if (is_out_of_descriptors(error) && !strangers_.empty()) return;  // they go first
    for (const auto& [lane, taker] : takers_) taker->cannot_take(error_text(error));
    return;
  }
}

void SocketNet::pause() {
  paused_ = true;
  reactor_->change(listener_, listening_, 0);
  set_timer();
}

void SocketNet::resume() {
  if (!paused_) return;
  paused_ = full_ = false;
  reactor_->change(listener_, listening_, EPOLLIN);
}

/// Until a stranger goes, or the oldest has had its time.
void SocketNet::wait_for_room() {
  pause();
  full_ = true;
  itimerspec soon{};
  soon.it_interval.tv_sec = 1;
  static_assert(kLeastTimeToProve < std::chrono::seconds(1));
  soon.it_value.tv_nsec = std::chrono::nanoseconds(kLeastTimeToProve).count();
  ::timerfd_settime(timer_.get(), 0, &soon, nullptr);
}

/// The oldest, if it is so late that it would try again: a rank proves itself at once.
bool SocketNet::forget_slow_stranger() {
  if (strangers_.empty() || age(strangers_.front()) < kMayHaveBeenSlow) return false;
  forget(strangers_.begin());
  return true;
}

void SocketNet::greet(Fd socket) {
  set_options(socket, options_.dead);
  if (strangers_.size() >= most_strangers()) forget(strangers_.begin());
  strangers_.push_back({.socket = std::move(socket)});
  set_timer();  // first: without memory for the rest it goes when its time is over
  const auto stranger = std::prev(strangers_.end());
  fill_random(stranger->challenge.nonce);
  const Bytes challenge = encode(stranger->challenge);
  const ssize_t sent = ::send(stranger->socket.get(), challenge.data(), challenge.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  stranger->token = reactor_->add(
      stranger->socket, EPOLLIN, [this, stranger](uint32_t) { hear(stranger); },
      [this, stranger] { forget(stranger); });
  if (sent != static_cast<ssize_t>(challenge.size()) || stranger->token == 0) forget(stranger);
}

void SocketNet::hear(Strangers::iterator stranger) {
  uint8_t bytes[Hello::kBytes];
  const ssize_t n =
      ::recv(stranger->socket.get(), bytes, Hello::kBytes - stranger->said.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return forget(stranger);
  stranger->said.insert(stranger->said.end(), bytes, bytes + n);
  if (stranger->said.size() == Hello::kBytes) decide(stranger);
}

void SocketNet::decide(Strangers::iterator stranger) {
  const auto hello = decode_hello(stranger->said);
  const auto taker = hello ? takers_.find(hello->lane) : takers_.end();
  if (taker == takers_.end()) return forget(stranger);
  const Key& key = taker->second->key();
  if (!same_digest(sender_proof(key, stranger->challenge, *hello), hello->proof)) {
    return forget(stranger);
  }
  const Welcome reply{receiver_proof(key, stranger->challenge, *hello)};
  reactor_->remove(stranger->socket, stranger->token);
  (void)taker->second->take(stranger->socket, *hello, reply);
  erase(stranger);
}

void SocketNet::forget(Strangers::iterator stranger) {
  reactor_->remove(stranger->socket, stranger->token);
  erase(stranger);
}

void SocketNet::erase(Strangers::iterator stranger) {
  strangers_.erase(stranger);
  if (full_) resume();
  set_timer();
}

/// Once a second or more often, while there is anything to wait for.
void SocketNet::tick() {
  uint64_t ticks = 0;
  (void)!::read(timer_.get(), &ticks, sizeof ticks);
  resume();
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const auto next = std::next(stranger);
    if (age(*stranger) > kTimeToProve) forget(stranger);
    stranger = next;
  }
  for (auto closing = closing_.begin(); closing != closing_.end();) {
    const auto next = std::next(closing);
    if (age(*closing) > options_.dead) {
      reactor_->remove(closing->socket, closing->token);
      closing_.erase(closing);
    }
    closing = next;
  }
  set_timer();
}

void SocketNet::set_timer() {
  itimerspec now{}, next{};
  const bool needed = paused_ || !strangers_.empty() || !closing_.empty();
  ::timerfd_gettime(timer_.get(), &now);
  if (needed == (now.it_interval.tv_sec != 0)) return;
  next.it_interval.tv_sec = next.it_value.tv_sec = needed ? 1 : 0;
  ::timerfd_settime(timer_.get(), 0, &next, nullptr);
}

}  // namespace mscclc::net
