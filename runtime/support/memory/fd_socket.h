// Tickets and the socket calls of the descriptor server, shared by its two ends.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/support/fd.h"
#include "runtime/support/memory/range.h"

namespace mscclc {

using FdSecret = std::array<uint8_t, 16>;

/// Where a descriptor is to be had.
struct FdTicket {
  std::array<uint8_t, 16> socket{};  ///< its name in the abstract namespace
  FdSecret secret{};
  std::vector<uint8_t> bytes() const;
  [[nodiscard]] static std::optional<FdTicket> read(std::span<const uint8_t> bytes);
};

/// A listening socket of the ticket's name. Invalid: errno says why.
[[nodiscard]] Fd listen_for_fds(const FdTicket& ticket);
/// Connects without waiting. Invalid: errno says why; EAGAIN: the backlog is full.
[[nodiscard]] Fd connect_for_fds(const FdTicket& ticket);

[[nodiscard]] bool send_secret(const Fd& socket, const FdSecret& secret);
/// Takes the request that has come; false: there is none, or it is not a request.
[[nodiscard]] bool receive_secret(const Fd& socket, FdSecret& secret);
[[nodiscard]] bool send_fd(const Fd& socket, const Fd& fd, const MemoryRange& range);
/// Takes the answer that has come. Invalid: the other end has closed, or (errno is EMFILE) this
/// process has no descriptors left.
[[nodiscard]] Fd receive_fd(const Fd& socket, MemoryRange& range);

}  // namespace mscclc
