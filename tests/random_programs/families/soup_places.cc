// What lies where in a soup, and where the next op may take it from or put it.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random_programs/families/soup.h"

namespace mscclc::random_programs {

std::string Soup::scratch() {
  static constexpr const char* kNames[] = {"s[0]", "t[0]", "u[0]"};
  return kNames[any(3)];
}

Soup::Value Soup::value_at(const Place& place) const {
  const auto found = values_.find(place);
  return found == values_.end() ? Value{} : found->second;
}

std::optional<Soup::Place> Soup::source(uint32_t rank, std::optional<uint32_t> position,
                                        const std::vector<uint32_t>& without) {
  std::vector<Place> all;
  for (const auto& [place, value] : values_) {
    if (place.rank != rank || !value.known()) continue;
    if (position && value.position != *position) continue;
    if (std::ranges::any_of(without,
                            [&](uint32_t r) { return std::ranges::count(value.ranks, r); }))
      continue;
    if (std::ranges::any_of(all, [&](const Place& p) { return p == place; })) continue;
    all.push_back(place);
  }
  if (all.empty()) return std::nullopt;
  return all[any(static_cast<uint32_t>(all.size()))];
}

Soup::Place Soup::target(uint32_t rank, uint32_t position) {
  if (!one_in(dice_, 3)) return {rank, scratch()};
  const uint32_t row = gathers_ ? any(ranks_) : 0;
  return {rank, fmt::format("output[{}]", row * positions_ + position)};
}

Soup::Operand Soup::far(uint32_t p, const Place& place, bool port) {
  return {channel(p, process(place.rank, block_of(p)), port) + "." + place.name, place};
}

void Soup::set(const Place& place, const Value& value) {
  values_[place] = value;
  if (!either_ || !place.name.starts_with("output")) return;
  for (uint32_t i = 0; i < positions_; ++i) {
    const Place input = {place.rank, fmt::format("input[{}]", i)};
    if (origin(input) == place && !(value == Value{i, {place.rank}})) values_.erase(input);
  }
}

Soup::Value Soup::added(const Value& a, const Value& b) const {
  Value sum = a;
  sum.ranks.insert(sum.ranks.end(), b.ranks.begin(), b.ranks.end());
  std::ranges::sort(sum.ranks);
  return sum;
}

}  // namespace mscclc::random_programs
