// What a completion that failed means, in words.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/network/verbs/resources/library.h"

namespace mscclc::verbs {

/// "transport retries exceeded (status 12): ...; check ..."
std::string status_text(ibv_wc_status status, uint32_t vendor_error);

}  // namespace mscclc::verbs
