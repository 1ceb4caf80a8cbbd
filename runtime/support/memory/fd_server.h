// Hands file descriptors to other processes of this machine over a unix socket, to those that know
// the descriptor's ticket. Descriptors cannot travel through the bootstrap.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/fd.h"
#include "runtime/support/memory/range.h"

namespace mscclc {

/// Serves descriptors of this process. Its socket has a name in the abstract namespace (nothing
/// stays in the file system) and takes only processes of the same user. Thread safety: from any
/// thread.
class FdServer {
 public:
  /// Starts the serving thread. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<FdServer> start(Diagnostics& diagnostics);
  /// The server that all devices of this process share, as each costs descriptors and a thread; it
  /// ends with its last user. A child of fork() has one of its own. nullptr: reported.
  [[nodiscard]] static std::shared_ptr<FdServer> of_process(Diagnostics& diagnostics);
  virtual ~FdServer() = default;

  /// Offers a descriptor (it is duplicated) until withdraw(), for those that want nothing but
  /// `range` of its memory. The ticket says where to fetch it: at most 64 bytes, part of it a
  /// secret number of 128 bits.
  [[nodiscard]] virtual std::vector<uint8_t> offer(int fd, const MemoryRange& range,
                                                   Diagnostics& diagnostics) = 0;
  /// The same of a descriptor that this keeps open meanwhile: without a duplicate.
  [[nodiscard]] virtual std::vector<uint8_t> offer(std::shared_ptr<const Fd> fd,
                                                   const MemoryRange& range,
                                                   Diagnostics& diagnostics) {
    return offer(fd->get(), range, diagnostics);
  }
  virtual void withdraw(const std::vector<uint8_t>& ticket) = 0;
};

/// How long a process may wait for another.
struct FetchWait {
  std::chrono::milliseconds timeout{30'000};
  /// Asked now and then; true ends the wait: the other will not answer any more. May be empty.
  std::function<bool()> over = {};
};

/// Fetches the descriptor of a ticket from the process that serves it. Errors (fd-fetch): no
/// process serves there, the ticket is not known, no answer while `wait` lasts, or its owner has
/// not offered all of `wanted`; (no-descriptors): this process has none left to take it by.
[[nodiscard]] Fd fetch_fd(const std::vector<uint8_t>& ticket, const MemoryRange& wanted,
                          const FetchWait& wait, Diagnostics& diagnostics);

}  // namespace mscclc
