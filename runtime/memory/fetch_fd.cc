// The client's end of the descriptor server.
#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "runtime/memory/fd_server.h"
#include "runtime/memory/fd_socket.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBacklogPause{2};

Fd failed(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("fd-fetch", {}, "cannot fetch a descriptor from a peer's process: " + why);
  return Fd();
}

int left_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

/// Connects, waiting while the server's backlog is full.
Fd connect_until(const FdTicket& ticket, Clock::time_point deadline) {
  for (;;) {
    Fd socket = connect_for_fds(ticket);
    if (socket.valid() || errno != EAGAIN || left_ms(deadline) == 0) return socket;
    std::this_thread::sleep_for(kBacklogPause);
  }
}

bool readable(const Fd& socket, Clock::time_point deadline) {
  pollfd polled{socket.get(), POLLIN, 0};
  for (;;) {
    const int left = left_ms(deadline);
    const int ready = ::poll(&polled, 1, left);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left == 0) return false;
  }
}

}  // namespace

Fd fetch_fd(const std::vector<uint8_t>& bytes, int timeout_ms, Diagnostics& diagnostics) {
  const std::optional<FdTicket> ticket = FdTicket::read(bytes);
  if (!ticket) return failed(diagnostics, "its ticket is damaged");
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const Fd socket = connect_until(*ticket, deadline);
  if (!socket.valid() && errno == ECONNREFUSED) {
    return failed(diagnostics,
                  "nobody serves it here: the process has ended, or runs on another machine or in "
                  "another network namespace (container)");
  }
  if (!socket.valid()) return failed(diagnostics, error_text(errno));
  if (!same_user(socket)) return failed(diagnostics, "it runs as another user");
  if (!send_secret(socket, ticket->secret)) return failed(diagnostics, error_text(errno));
  if (!readable(socket, deadline)) {
    return failed(diagnostics, fmt::format("no answer within {} ms", timeout_ms));
  }
  Fd fd = receive_fd(socket);
  if (!fd.valid()) {
    return failed(diagnostics, "it does not offer this one (any more), or runs as another user");
  }
  return fd;
}

}  // namespace mscclc
