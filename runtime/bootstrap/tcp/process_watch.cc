#include "runtime/bootstrap/tcp/process_watch.h"

#include "runtime/support/process_end.h"

namespace mscclc {

void ProcessWatch::watch(int32_t process) {
  if (!on_ || ends_.contains(process)) return;
  const auto end = end_of_process(process);
  if (end == nullptr) return;
  epoll_.add(end->get(), kProcessKey + static_cast<uint64_t>(process), EPOLLIN);
  ends_.emplace(process, end);
}

bool ProcessWatch::forget(int32_t process) {
  const auto found = ends_.find(process);
  if (found == ends_.end()) return false;
  epoll_.remove(found->second->get());
  ends_.erase(found);
  return true;
}

}  // namespace mscclc
