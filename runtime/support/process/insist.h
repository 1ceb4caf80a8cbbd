// What must be said although there is no memory: that something cannot go on. Without that, others
// would wait forever.
#pragma once

#include <chrono>
#include <new>
#include <thread>

namespace mscclc {

/// Does `say` until there was memory for it; it must be right to begin it anew. A large piece is
/// what is lacking as a rule, so that the first try succeeds.
template <class Say>
void insist(Say say) {
  for (;;) {
    try {
      say();
      return;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace mscclc
