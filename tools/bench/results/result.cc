#include "tools/bench/results/result.h"

#include <array>

namespace mscclc::bench {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"plan", "baseline", "floor", "handwritten"};

}  // namespace

std::string_view name(Role role) { return kRoles[static_cast<size_t>(role)]; }

std::optional<Role> find_role(std::string_view name) {
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (kRoles[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace mscclc::bench
