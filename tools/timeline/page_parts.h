// The fixed parts of the page: its style, and the script that draws.
#pragma once

#include <string_view>

namespace mscclc::timeline {

extern const std::string_view kPageStyle, kPageBody, kPageScript;

}  // namespace mscclc::timeline
