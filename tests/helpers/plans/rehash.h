// For tests: gives a plan whose content was changed the hash that fits.
#pragma once

#include <string>

namespace mscclc::testing {

/// Sets `mscclc.hash` to the hash of the content; leaves text alone that has no such member.
std::string rehash(std::string plan);

}  // namespace mscclc::testing
