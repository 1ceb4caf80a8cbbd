#include "tests/fakes/cuda/fake_fds.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace mscclc::cuda {

std::vector<uint8_t> FakeFds::offer(int fd, const MemoryRange& range, Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    diagnostics.error("fd-server", {}, "cannot copy a descriptor");
    return {};
  }
  std::vector<uint8_t> ticket(sizeof next_);
  ++next_;
  std::memcpy(ticket.data(), &next_, sizeof next_);
  fds_[ticket] = {std::move(copy), range};
  return ticket;
}

void FakeFds::withdraw(const std::vector<uint8_t>& ticket) {
  const std::lock_guard lock(mutex_);
  fds_.erase(ticket);
}

Fd FakeFds::fetch(const std::vector<uint8_t>& ticket, const MemoryRange& wanted,
                  Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  const auto found = fds_.find(ticket);
  if (found == fds_.end()) {
    diagnostics.error("fd-fetch", {}, "the ticket is not known");
    return {};
  }
  if (!found->second.range.holds(wanted)) {
    diagnostics.error("fd-fetch", {}, found->second.range.refusal(wanted));
    return {};
  }
  return Fd(fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace mscclc::cuda
