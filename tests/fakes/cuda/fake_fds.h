// A server of descriptors for tests in one process, without sockets and threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/support/memory/fd_server.h"

namespace mscclc::cuda {

class FakeFds final : public FdServer {
 public:
  std::vector<uint8_t> offer(int fd, const MemoryRange& range, Diagnostics& diagnostics) override;
  void withdraw(const std::vector<uint8_t>& ticket) override;
  /// A copy of an offered descriptor. Errors (fd-fetch): the ticket is not known, or not for all of
  /// `wanted`.
  [[nodiscard]] Fd fetch(const std::vector<uint8_t>& ticket, const MemoryRange& wanted,
                         Diagnostics& diagnostics);
  size_t offers() const { return fds_.size(); }

 private:
  std::mutex mutex_;
  struct Offered {
    Fd fd;
    MemoryRange range;
  };
  std::map<std::vector<uint8_t>, Offered> fds_;
  uint64_t next_ = 0;
};

}  // namespace mscclc::cuda
