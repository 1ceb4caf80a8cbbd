#include "runtime/bootstrap/tcp/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>

#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/wire/handshake.h"

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

namespace {

/// What was tried in vain: "10.0.0.1:80: Address already in use (98)".
struct Tried {
  std::string text;
  bool warn = false;  ///< somebody else has a place that ranks try first

  void add(const std::string& where) {
    warn |= errno == EADDRINUSE;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", where, error_text(errno));
  }
};

std::optional<Listener> listen_for_network(const HubOptions& options, Tried& tried) {
  for (Address address : options.addresses) {
    Fd socket = listen_on(address);
    if (socket.valid()) {
      address.set_port(local_port(socket));
      return Listener{std::move(socket), address};
    }
    tried.add(address.text());
  }
  for (const uint16_t port : options.ports) {
    Fd socket = listen_everywhere(port);
    if (socket.valid()) {
      const Address here = Address::loopback(local_port(socket));
      return Listener{std::move(socket), here};
    }
    tried.add(fmt::format("port {}", port));
  }
  return std::nullopt;
}

std::optional<Listener> listen_locally(const Secret& secret, Tried& tried) {
  const auto key = wire::local_name(secret);
  for (uint16_t number = 1; number <= kLocalNames; ++number) {
    const Address address = Address::local(key, number);
    Fd socket = listen_on(address);
    if (socket.valid()) return Listener{std::move(socket), address};
    tried.add(address.text());
  }
  return std::nullopt;
}

}  // namespace

std::vector<Listener> open_listeners(const HubOptions& options, Diagnostics& diagnostics) {
  std::vector<Listener> listeners;
  const auto add = [&](std::optional<Listener> listener, const Tried& tried) {
    if (!listener) {
      diagnostics.error("cannot-listen", {}, "the bootstrap cannot listen at " + tried.text);
      return false;
    }
    if (tried.warn) {
      diagnostics.warning("port-taken", {},
                          fmt::format("somebody else listens where this job's ranks look for it "
                                      "first ({}); the bootstrap listens at {}",
                                      tried.text, listener->address.text()));
    }
    listeners.push_back(std::move(*listener));
    return true;
  };
  Tried network, local;
  const bool any = !options.addresses.empty() || !options.ports.empty();
  if (options.local) {
    auto listener = listen_locally(options.secret, local);
    if (!listener && any) {  // ranks look at both
      diagnostics.warning("port-taken", {},
                          fmt::format("somebody else has all unix sockets of this job ({}); its "
                                      "ranks meet over TCP alone",
                                      local.text));
    } else if (!add(std::move(listener), local)) {
      return {};
    }
  }
  if (any && !add(listen_for_network(options, network), network)) return {};
  return listeners;
}

}  // namespace mscclc
