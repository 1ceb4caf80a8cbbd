// The client's end of the descriptor server.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>

#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/memory/fd_server.h"
#include "runtime/support/memory/fd_socket.h"

namespace mscclc {
namespace {

constexpr std::chrono::milliseconds kBacklogPause{2};

Fd failed(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("fd-fetch", {}, "cannot fetch a descriptor from a peer's process: " + why);
  return Fd();
}

/// Longer times are this one: a caller's could be more than clocks hold.
constexpr std::chrono::milliseconds kLongest{std::numeric_limits<int>::max()};

/// A wait that has begun.
class Wait {
 public:
  explicit Wait(const FetchWait& limits)
      : limits_(limits),
        deadline_(std::chrono::steady_clock::now() + std::min(limits.timeout, kLongest)) {}
  bool goes_on() const { return left_ms(deadline_) > 0 && !is_over(); }
  /// Why it has ended.
  std::string why() const {
    if (is_over()) return "the job has failed meanwhile";
    return fmt::format("no answer within {} ms", limits_.timeout.count());
  }
  SteadyTime next_look() const {
    return std::min(deadline_, std::chrono::steady_clock::now() + kAskAgain);
  }

 private:
  bool is_over() const { return limits_.over && limits_.over(); }

  const FetchWait& limits_;
  const SteadyTime deadline_;
};

Fd out_of_descriptors(Diagnostics& diagnostics) {
  diagnostics.error("no-descriptors", {},
                    "cannot fetch a descriptor from a peer's process, as this process has no file "
                    "descriptors left ('ulimit -n' raises the limit)");
  return Fd();
}

/// Connects, waiting while the server's backlog is full.
Fd connect_during(const Wait& wait, const FdTicket& ticket) {
  for (;;) {
    Fd socket = connect_for_fds(ticket);
    if (socket.valid() || errno != EAGAIN || !wait.goes_on()) return socket;
    std::this_thread::sleep_for(kBacklogPause);
  }
}

bool is_answered_during(const Wait& wait, const Fd& socket) {
  while (!await(socket.get(), POLLIN, wait.next_look())) {
    if (!wait.goes_on()) return false;
  }
  return true;
}

/// One attempt. nullopt: the server has closed the connection unanswered.
std::optional<Fd> fetch_once(const FdTicket& ticket, const MemoryRange& wanted, const Wait& wait,
                             Diagnostics& diagnostics) {
  const Fd socket = connect_during(wait, ticket);
  if (!socket.valid() && errno == ECONNREFUSED) {
    return failed(
        diagnostics,
        "no process serves it here: the process has ended, or runs on another machine or in "
        "another network namespace (container)");
  }
  if (!socket.valid() && errno == EAGAIN) return failed(diagnostics, wait.why());
  if (!socket.valid() && is_out_of_descriptors(errno)) return out_of_descriptors(diagnostics);
  if (!socket.valid()) return failed(diagnostics, error_text(errno));
  if (!same_user(socket)) return failed(diagnostics, "it runs as another user");
  if (!send_secret(socket, ticket.secret)) {
    if (errno == EPIPE || errno == ECONNRESET) return std::nullopt;
    return failed(diagnostics, error_text(errno));
  }
  if (!is_answered_during(wait, socket)) return failed(diagnostics, wait.why());
  MemoryRange offered;
  Fd fd = receive_fd(socket, offered);
  if (!fd.valid() && is_out_of_descriptors(errno)) return out_of_descriptors(diagnostics);
  if (!fd.valid()) return std::nullopt;
  if (!offered.holds(wanted)) return failed(diagnostics, offered.refusal(wanted));
  return fd;
}

}  // namespace

Fd fetch_fd(const std::vector<uint8_t>& bytes, const MemoryRange& wanted, const FetchWait& limits,
            Diagnostics& diagnostics) {
  const std::optional<FdTicket> ticket = FdTicket::read(bytes);
  if (!ticket) return failed(diagnostics, "its ticket is damaged");
  for (const Wait wait(limits);;) {
    const SteadyTime begun = std::chrono::steady_clock::now();
    if (auto fd = fetch_once(*ticket, wanted, wait, diagnostics)) return std::move(*fd);
    // The server closes connections that say nothing: this process may have been stopped.
    const bool slow = std::chrono::steady_clock::now() - begun >= kMayHaveBeenSlow;
    if (slow && wait.goes_on()) continue;
    return failed(diagnostics, "it does not offer this one (any more), or runs as another user");
  }
}

}  // namespace mscclc
