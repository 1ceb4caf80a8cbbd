// How an op adds up its sources: enum and table, made from summations.def. What a tree is, is in
// trees.h; an exact sum is that of the numbers, rounded to the data type once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mscclc {

enum class Summation : uint8_t {
  in_turn,  ///< one after the other, in written order
#define SUMMATION(name, ...) name,
#include "ir/ops/summations.def"
#undef SUMMATION
};

/// One row of the table.
struct SummationInfo {
  Summation summation;
  std::string_view name;  ///< "" of in_turn, which has no option
  uint32_t most_in_line;  ///< sources up to which it is the same as one after the other
  uint32_t most_sources;  ///< of an op
  std::string_view at_switches;
  std::string_view summary;
};

namespace detail {
inline constexpr SummationInfo kSummations[] = {
    {Summation::in_turn, "", ~uint32_t{0}, ~uint32_t{0}, "", ""},
#define SUMMATION(name, most_in_line, most_sources, at_switches, summary) \
  {Summation::name, #name, most_in_line, most_sources, at_switches, summary},
#include "ir/ops/summations.def"
#undef SUMMATION
};
}  // namespace detail

/// The row of a summation; in_turn has one, too.
constexpr const SummationInfo& info(Summation summation) {
  return detail::kSummations[static_cast<size_t>(summation)];
}
/// All rows but that of in_turn.
constexpr std::span<const SummationInfo> summations() {
  return std::span(detail::kSummations).subspan(1);
}
constexpr std::string_view name(Summation summation) { return info(summation).name; }
/// The summation whose option this is.
std::optional<Summation> find_summation(std::string_view name);

}  // namespace mscclc
