// The externals and flags of a call, as C gives them.
#pragma once

#include <vector>

#include "ir/support/result.h"
#include "runtime/api/call.h"
#include "runtime/doors/c/mscclc.h"

namespace mscclc::capi {

/// Externals of `call`, whose names they keep. An error: which is not well formed.
Result<std::vector<CallExternal>> externals_of(const mscclc_call_t& call);

/// Flags of `call`, whose names they keep. An error: which are not well formed.
Result<std::vector<CallFlags>> flags_of(const mscclc_call_t& call);

}  // namespace mscclc::capi
