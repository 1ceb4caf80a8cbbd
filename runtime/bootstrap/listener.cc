#include "runtime/bootstrap/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "runtime/bootstrap/connection.h"

namespace mscclc {
namespace {

constexpr int kBacklog = 1024;

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

Fd listen_on(const Address& address) {
  return listen_with(open_tcp(address.is_v4() ? AF_INET : AF_INET6), address.get(),
                     address.length());
}

Fd listen_everywhere(uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  six.sin6_addr = in6addr_any;
  Fd socket = open_tcp(AF_INET6);
  if (socket.valid()) {
    set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    socket = listen_with(std::move(socket), reinterpret_cast<const sockaddr*>(&six), sizeof six);
    if (socket.valid() || errno == EADDRINUSE) return socket;
  }
  sockaddr_in four{};  // a machine without IPv6
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return listen_with(open_tcp(AF_INET), reinterpret_cast<const sockaddr*>(&four), sizeof four);
}

Listener open_listener(const HubOptions& options, Diagnostics& diagnostics) {
  std::string tried;
  const auto failed = [&tried](const std::string& where) {
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", where, error_text(errno));
  };
  for (Address address : options.addresses) {
    Fd socket = listen_on(address);
    if (socket.valid()) {
      address.set_port(local_port(socket));
      return {std::move(socket), address};
    }
    failed(address.text());
  }
  for (const uint16_t port : options.ports) {
    Fd socket = listen_everywhere(port);
    if (socket.valid()) {
      const Address here = Address::loopback(local_port(socket));
      return {std::move(socket), here};
    }
    failed(fmt::format("port {}", port));
  }
  diagnostics.error("cannot-listen", {}, "the bootstrap cannot listen at " + tried);
  return {};
}

}  // namespace mscclc
