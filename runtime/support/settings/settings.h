// What users have set, checked as a whole when a communicator is made: a mistake must not wait for
// the machine, or the call, where it matters.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

/// Whether all variables of ours that are set have values that are allowed:
/// Environment::check_ours(), and the contents of MSCCLC_ID, MSCCLC_SOCKET_IFNAME and
/// MSCCLC_IB_HCA. Mistakes that `diagnostics` has are not reported again. Errors (bad-variable).
[[nodiscard]] bool check_settings(const Environment& environment, Diagnostics& diagnostics);

}  // namespace mscclc
