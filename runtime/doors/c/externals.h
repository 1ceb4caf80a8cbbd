// The externals of a call, as C gives them.
#pragma once

#include <string>
#include <vector>

#include "runtime/api/call.h"
#include "runtime/doors/c/mscclc.h"

namespace mscclc::capi {

/// Externals of `call`, whose names they keep. False: `why` says which is not well formed.
[[nodiscard]] bool externals_of(const mscclc_call_t& call, std::vector<CallExternal>& externals,
                                std::string& why);

}  // namespace mscclc::capi
