// Two jobs of one name on one machine: processes that were started as the same rank of it. Ranks
// that know each other only by what their launcher says do not know to which of two jobs another
// rank belongs; but before a rank of the other job speaks, and even before it knows that it will,
// the environment that its program began with says which rank it is.
#pragma once

#include <vector>

#include "runtime/bootstrap/tcp/hub.h"

namespace mscclc {

/// `ranks`: those of one job that have joined and run on this machine. Finds all processes of this
/// user that run the same program, were started as the same rank of the same job as one of them,
/// not before the first of them, and are neither one of them nor its parent or child. None, if the
/// environment of one of them does not say that it is the rank as which it has joined.
[[nodiscard]] OtherJob find_other_job(const std::vector<RankProcess>& ranks);

}  // namespace mscclc
