// Two jobs of one name on one machine: processes that were started as the same rank of it. Ranks
// that know each other only by what their launcher says cannot tell whose of two jobs another rank
// is; but before a rank of the other job speaks, and even before it knows that it will, the
// environment that its program began with says which rank it is.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/bootstrap/tcp/hub.h"

namespace mscclc {

/// `ranks`: processes on this machine that have joined as the ranks of one job. Looks for a process
/// of this user that runs the same program, was started as the same rank of the same job as one of
/// them, not before the first of them, and is neither one of them nor its parent or child. Finds
/// all such processes.
[[nodiscard]] OtherJob find_other_job(const std::vector<int32_t>& ranks);

}  // namespace mscclc
