// The client's end of the descriptor server.
#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "runtime/deadline.h"
#include "runtime/memory/fd_server.h"
#include "runtime/memory/fd_socket.h"

namespace mscclc {
namespace {

constexpr std::chrono::milliseconds kBacklogPause{2};

Fd failed(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("fd-fetch", {}, "cannot fetch a descriptor from a peer's process: " + why);
  return Fd();
}

Fd out_of_descriptors(Diagnostics& diagnostics) {
  diagnostics.error("no-descriptors", {},
                    "cannot fetch a descriptor from a peer's process, as this process has no file "
                    "descriptors left ('ulimit -n' raises the limit)");
  return Fd();
}

bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

/// Connects, waiting while the server's backlog is full.
Fd connect_until(const FdTicket& ticket, SteadyTime deadline) {
  for (;;) {
    Fd socket = connect_for_fds(ticket);
    if (socket.valid() || errno != EAGAIN || left_ms(deadline) == 0) return socket;
    std::this_thread::sleep_for(kBacklogPause);
  }
}

}  // namespace

Fd fetch_fd(const std::vector<uint8_t>& bytes, const MemoryRange& wanted, int timeout_ms,
            Diagnostics& diagnostics) {
  const std::optional<FdTicket> ticket = FdTicket::read(bytes);
  if (!ticket) return failed(diagnostics, "its ticket is damaged");
  const SteadyTime deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  const Fd socket = connect_until(*ticket, deadline);
  if (!socket.valid() && errno == ECONNREFUSED) {
    return failed(diagnostics,
                  "nobody serves it here: the process has ended, or runs on another machine or in "
                  "another network namespace (container)");
  }
  if (!socket.valid() && is_out_of_descriptors(errno)) return out_of_descriptors(diagnostics);
  if (!socket.valid()) return failed(diagnostics, error_text(errno));
  if (!same_user(socket)) return failed(diagnostics, "it runs as another user");
  if (!send_secret(socket, ticket->secret)) return failed(diagnostics, error_text(errno));
  if (!await(socket.get(), POLLIN, deadline)) {
    return failed(diagnostics, fmt::format("no answer within {} ms", timeout_ms));
  }
  MemoryRange offered;
  Fd fd = receive_fd(socket, offered);
  if (!fd.valid() && is_out_of_descriptors(errno)) return out_of_descriptors(diagnostics);
  if (!fd.valid()) {
    return failed(diagnostics, "it does not offer this one (any more), or runs as another user");
  }
  if (!offered.holds(wanted)) return failed(diagnostics, offered.refusal(wanted));
  return fd;
}

}  // namespace mscclc
