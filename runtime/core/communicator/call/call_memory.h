// What the checks of a call's externals and of its flags have in common: where memory lies, and how
// a name is refused that the plan does not declare.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/diagnostics/printable.h"

namespace mscclc {

/// Memory that a call reads or writes.
struct CallMemory {
  std::string name;  ///< "input", "external 'weight'"
  const void* data = nullptr;
  uint64_t bytes = 0;

  /// Have the two a byte in common?
  bool overlaps(const CallMemory& other) const {
    const auto at = reinterpret_cast<uintptr_t>(data);
    const auto other_at = reinterpret_cast<uintptr_t>(other.data);
    return bytes != 0 && other.bytes != 0 && at < other_at + other.bytes && other_at < at + bytes;
  }
};

/// Reports (bad-external) that a plan declares no such `what` ("external"), and which it has;
/// false.
template <class Declared>
bool refuse_undeclared(uint32_t rank, const std::string& plan, std::string_view what,
                       std::string_view given, const std::vector<Declared>& declared,
                       Diagnostics& diagnostics) {
  std::string names;
  for (const Declared& one : declared) {
    names += (names.empty() ? "it has '" : ", '") + one.name + "'";
  }
  diagnostics.error("bad-external", {},
                    fmt::format("rank {}: '{}' declares no {} {}; {}", rank, plan, what,
                                quoted(given), names.empty() ? "it has none" : names));
  return false;
}

}  // namespace mscclc
