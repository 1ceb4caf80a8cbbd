#include "runtime/support/address/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace mscclc {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kMaxStrangers = 256;
/// What the system takes for keepalive.
constexpr std::chrono::hours kLongestWatch{8};

Fd listen_with(Fd socket, const sockaddr* address, socklen_t length) {
  if (!socket.valid()) return socket;
  // A job may start again at once on the port of the one before.
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.get(), address, length) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    socket.reset();
  }
  return socket;
}

}  // namespace

Fd open_stream(int family) {
  return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(const Fd& socket, int level, int option, int value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof value);
}

void set_options(const Fd& socket, std::chrono::seconds dead) {
  const auto seconds = static_cast<int>(
      std::clamp<int64_t>(dead.count(), 1, std::chrono::seconds(kLongestWatch).count()));
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::max(seconds / 3, 1));
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(seconds / 6, 1));
  // Also while data is on its way, when keepalive does not ask.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000);
}

namespace {

Address end_of(const Fd& socket, decltype(::getsockname)* ask) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* raw = reinterpret_cast<sockaddr*>(&storage);
  if (ask(socket.get(), raw, &length) != 0) return {};
  return Address::from(raw).value_or(Address());
}

}  // namespace

Address own_end(const Fd& socket) { return end_of(socket, ::getsockname); }

Address other_end(const Fd& socket) { return end_of(socket, ::getpeername); }

uint16_t local_port(const Fd& socket) {
  const Address own = own_end(socket);
  return own.family() == AF_UNSPEC ? uint16_t{0} : own.port();
}

Fd begin_connect(const Address& address) {
  Fd socket = open_stream(address.family());
  if (!socket.valid()) return socket;
  // EINTR: it goes on all the same, as if EINPROGRESS.
  if (::connect(socket.get(), address.get(), address.length()) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    socket.reset();
  }
  return socket;
}

int connect_error(const Fd& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

Fd listen_on(const Address& address) {
  return listen_with(open_stream(address.family()), address.get(), address.length());
}

Fd listen_everywhere(uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  six.sin6_addr = in6addr_any;
  Fd socket = open_stream(AF_INET6);
  if (socket.valid()) {
    set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    socket = listen_with(std::move(socket), reinterpret_cast<const sockaddr*>(&six), sizeof six);
    if (socket.valid() || errno == EADDRINUSE) return socket;
  }
  sockaddr_in four{};  // a machine without IPv6
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return listen_with(open_stream(AF_INET), reinterpret_cast<const sockaddr*>(&four), sizeof four);
}

size_t most_strangers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxStrangers;
  return std::clamp<size_t>(limit.rlim_cur / 4, 1, kMaxStrangers);
}

}  // namespace mscclc
