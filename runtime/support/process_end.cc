#include "runtime/support/process_end.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

struct Watched {
  std::mutex mutex;
  std::map<int32_t, std::weak_ptr<const Fd>> ends;
};

}  // namespace

std::shared_ptr<const Fd> end_of_process(int32_t process) {
  if (process <= 0 || process == ::getpid()) return nullptr;
  auto& watched = process_wide<Watched>();
  const std::lock_guard lock(watched.mutex);
  std::erase_if(watched.ends, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = watched.ends[process].lock()) return known;
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));  // closed on exec
  if (!fd.valid()) {
    watched.ends.erase(process);
    return nullptr;
  }
  auto made = std::make_shared<const Fd>(std::move(fd));
  watched.ends[process] = made;
  return made;
}

}  // namespace mscclc
