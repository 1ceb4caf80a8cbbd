// The end of another process of this machine. A child that it has forked may hold its sockets,
// which then do not show it.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/support/fd.h"

namespace mscclc {

/// For poll(2): readable once the process has ended. All of this process share one descriptor for
/// it. nullptr: the system has none to give, or does not know the process; `process` may be this
/// one, which has none either. From any thread.
[[nodiscard]] std::shared_ptr<const Fd> end_of_process(int32_t process);

}  // namespace mscclc
