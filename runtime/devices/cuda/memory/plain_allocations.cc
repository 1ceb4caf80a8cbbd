#include "runtime/devices/cuda/memory/plain_allocations.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

void free_plain(const SharedContext& context, abi::Address base) {
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  context->driver().MemFree(base);
}

}  // namespace

// A pipe whose write ends are all closed hangs up.
bool PlainAllocations::Pipe::is_held() const {
  if (!read.valid()) return false;
  pollfd end{read.get(), 0, 0};
  return ::poll(&end, 1, 0) != 1 || (end.revents & POLLHUP) == 0;
}

PlainAllocations& PlainAllocations::of_process() { return process_wide<PlainAllocations>(); }

void PlainAllocations::add(abi::Address base) {
  const std::lock_guard lock(mutex_);
  all_[base] = {};
}

bool PlainAllocations::has(abi::Address base) const {
  const std::lock_guard lock(mutex_);
  return all_.count(base) != 0;
}

Fd PlainAllocations::hold(abi::Address base, Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(base);
  int ends[2] = {-1, -1};
  const bool made =
      found != all_.end() && (found->second.read.valid() || ::pipe2(ends, O_CLOEXEC) == 0);
  if (ends[0] >= 0) found->second = {Fd(ends[0]), Fd(ends[1])};
  Fd copy(made ? ::fcntl(found->second.write.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!copy.valid()) {
    diagnostics.error("cannot-share", {},
                      "cannot keep memory for processes that map it: " +
                          (found == all_.end() ? "it is gone" : error_text(errno)));
  }
  return copy;
}

void PlainAllocations::remove(const SharedContext& context, abi::Address base) {
  {
    const std::lock_guard lock(mutex_);
    auto entry = all_.extract(base);
    if (entry.empty()) return;  // of this process's parent
    Pipe pipe = std::move(entry.mapped());
    pipe.write.reset();
    left_.push_back({context, base, std::move(pipe)});
  }
  sweep(context);
}

void PlainAllocations::sweep(const SharedContext& context) {
  std::vector<Left> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto held = std::stable_partition(left_.begin(), left_.end(), [&](const Left& left) {
      return left.context->handle() != context->handle() || left.pipe.is_held();
    });
    gone.assign(std::make_move_iterator(held), std::make_move_iterator(left_.end()));
    left_.erase(held, left_.end());
  }
  for (const Left& left : gone) free_plain(left.context, left.base);
}

}  // namespace mscclc::cuda
