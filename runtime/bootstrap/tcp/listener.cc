#include "runtime/bootstrap/tcp/listener.h"

#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <string>

#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/wire/handshake.h"

namespace mscclc {
namespace {

/// What was tried in vain: "10.0.0.1:80: Address already in use (98)".
struct Tried {
  std::string text;
  bool warn = false;  ///< another process has a place that ranks try first
  int error = 0;      ///< of the last

  void add(const std::string& where) {
    error = errno;
    warn |= error == EADDRINUSE;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", where, error_text(error));
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
      return Listener{std::move(socket), here, true};
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

/// Whether a process of this user listens at another of the job's unix sockets than `own`: it runs
/// a hub of a job with the same secret. Each hub looks at all of them after it has begun to listen,
/// so of two that begin at the same time at least one sees the other.
std::optional<Address> other_hub(const Secret& secret, const Address& own) {
  const auto key = wire::local_name(secret);
  for (uint16_t number = 1; number <= kLocalNames; ++number) {
    const Address address = Address::local(key, number);
    if (address == own) continue;
    const Fd socket = begin_connect(address);
    if (socket.valid() && connect_error(socket) == 0 && same_user(socket)) return address;
  }
  return std::nullopt;
}

}  // namespace

std::string place(const Listener& listener) {
  if (listener.address.is_local()) return "a unix socket of this machine";
  if (!listener.everywhere) return listener.address.text();
  return fmt::format("port {} of all addresses", listener.address.port());
}

std::vector<Listener> open_listeners(const HubOptions& options, Diagnostics& diagnostics) {
  std::vector<Listener> listeners;
  const auto add = [&](std::optional<Listener> listener, const Tried& tried) {
    if (!listener) {
      diagnostics.error(code_of(tried.error, "cannot-listen"), {},
                        "the bootstrap cannot listen at " + tried.text);
      return false;
    }
    if (tried.warn) {
      diagnostics.warning("port-taken", {},
                          fmt::format("another process listens where this job's ranks look for it "
                                      "first ({}); the bootstrap listens at {}",
                                      tried.text, place(*listener)));
    }
    listeners.push_back(std::move(*listener));
    return true;
  };
  Tried network, local;
  const bool any = !options.addresses.empty() || !options.ports.empty();
  if (options.local) {
    auto listener = listen_locally(options.secret, local);
    if (!listener && any) {  // ranks look at both
      diagnostics.warning(
          "port-taken", {},
          fmt::format(
              "another process has all unix sockets of this job ({}); its ranks meet over TCP only",
              local.text));
    } else if (!add(std::move(listener), local)) {
      return {};
    }
    const auto other =
        other_hub(options.secret, listeners.empty() ? Address() : listeners[0].address);
    if (other && options.failed.empty()) {
      diagnostics.error(
          "two-jobs", {},
          fmt::format("another process of this user already runs the hub of such a job, at "
                      "the unix socket {}: two jobs have the same name",
                      other->text()));
      return {};
    }
  }
  // A hub that only says why the job cannot be does so wherever it can.
  if (any && !add(listen_for_network(options, network), network) && options.failed.empty())
    return {};
  return listeners;
}

}  // namespace mscclc
