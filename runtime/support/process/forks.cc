#include "runtime/support/process/forks.h"

#include <pthread.h>

namespace mscclc {

uint32_t forks() {
  // Without memory for the handler, children do not learn of it.
  [[maybe_unused]] static const int registered = ::pthread_atfork(
      nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  return forks_so_far();
}

}  // namespace mscclc
