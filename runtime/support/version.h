// The version of the program and of its libraries.
#pragma once

namespace mscclc {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace mscclc
