// Sockets that do not block: how they are opened, connected and watched, and where their ends are.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "runtime/support/address/address.h"
#include "runtime/support/fd.h"

namespace mscclc {

/// No delays; a machine that has not answered for so long counts as dead, and the connection
/// breaks.
void set_options(const Fd& socket, std::chrono::seconds dead);
/// A stream socket. Invalid: errno says why.
[[nodiscard]] Fd open_stream(int family);
void set_option(const Fd& socket, int level, int option, int value);
/// Where this end of a socket is; nowhere: it has no name.
Address own_end(const Fd& socket);
Address other_end(const Fd& socket);
uint16_t local_port(const Fd& socket);
/// Begins to connect. Invalid: errno says why. Writable: connected, or connect_error() says why
/// not.
[[nodiscard]] Fd begin_connect(const Address& address);
[[nodiscard]] int connect_error(const Fd& socket);
/// Listens at one address. Invalid: errno says why.
[[nodiscard]] Fd listen_on(const Address& address);
/// On all addresses of this machine, IPv4 and IPv6.
[[nodiscard]] Fd listen_everywhere(uint16_t port);
/// How many connections are kept whose other end has proved nothing: 256, but a quarter of the
/// descriptors that this process may have at most.
size_t most_strangers();

}  // namespace mscclc
