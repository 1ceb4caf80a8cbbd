#include "runtime/bootstrap/tcp/hub_listeners.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "ir/support/precondition.h"

namespace mscclc {

HubListeners::HubListeners(EpollSet& epoll, std::vector<Listener> listeners) : epoll_(epoll) {
  precondition(!listeners.empty() && listeners.size() < kFirstKey);
  for (Listener& listener : listeners) add(std::move(listener));
}

std::string HubListeners::text() const {
  std::string text;
  for (const Listener& listener : listeners_) {
    if (!text.empty()) text += ", ";
    text += place(listener);
  }
  return text;
}

void HubListeners::add(Listener listener) {
  epoll_.add(listener.socket.get(), kListenerKey + listeners_.size(), EPOLLIN);
  listeners_.push_back(std::move(listener));
}

HubListeners::Caller HubListeners::accept(size_t i) {
  if (i >= listeners_.size()) return {.error = EAGAIN};
  const Listener& listener = listeners_[i];
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  auto* raw = reinterpret_cast<sockaddr*>(&peer);
  Fd socket(::accept4(listener.socket.get(), raw, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return {.error = errno};
  const bool local = listener.address.is_local();
  if (local && !same_user(socket)) return {};
  Address to = local ? listener.address : own_end(socket);
  return {std::move(socket), Address::from(raw).value_or(Address()), std::move(to)};
}

void HubListeners::look_away() {
  for (const Listener& listener : listeners_) epoll_.change(listener.socket.get(), 0, 0);
  looks_ = false;
}

void HubListeners::look_again() {
  if (looks_) return;
  for (size_t i = 0; i < listeners_.size(); ++i) {
    epoll_.change(listeners_[i].socket.get(), kListenerKey + i, EPOLLIN);
  }
  looks_ = true;
}

void HubListeners::stop() {
  for (const Listener& listener : listeners_) {
    epoll_.remove(listener.socket.get());
    ::shutdown(listener.socket.get(), SHUT_RDWR);
  }
  listeners_.clear();
  looks_ = true;
}

}  // namespace mscclc
