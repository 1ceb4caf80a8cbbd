#include "tests/random_programs/families/soup/places.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc::random_programs::soup {

void Places::begin() {
  for (uint32_t r = 0; r < shape_.ranks; ++r) {
    for (uint32_t i = 0; i < shape_.positions; ++i) {
      values_[{r, fmt::format("input[{}]", i)}] = {i, {r}};
    }
  }
}

std::string Places::scratch() {
  static constexpr const char* kNames[] = {"s[0]", "t[0]", "u[0]"};
  return kNames[any(3)];
}

Value Places::value_at(const RankChunk& place) const {
  const auto found = values_.find(place);
  return found == values_.end() ? Value{} : found->second;
}

std::optional<RankChunk> Places::source(uint32_t rank, std::optional<uint32_t> position,
                                        const std::vector<uint32_t>& without) {
  std::vector<RankChunk> all;
  for (const auto& [place, value] : values_) {
    if (place.rank != rank || !value.known()) continue;
    if (position && value.position != *position) continue;
    if (std::ranges::any_of(without,
                            [&](uint32_t r) { return std::ranges::count(value.ranks, r); }))
      continue;
    if (std::ranges::any_of(all, [&](const RankChunk& p) { return p == place; })) continue;
    all.push_back(place);
  }
  if (all.empty()) return std::nullopt;
  return all[any(static_cast<uint32_t>(all.size()))];
}

std::optional<RankChunk> Places::holder(const Value& wanted, const RankChunk& but) {
  std::vector<RankChunk> all;
  for (const auto& [place, value] : values_) {
    if (value == wanted && !(place == but)) all.push_back(place);
  }
  if (all.empty()) return std::nullopt;
  return all[any(static_cast<uint32_t>(all.size()))];
}

RankChunk Places::target(uint32_t rank, uint32_t position) {
  if (!one_in(dice_, 3)) return {rank, scratch()};
  const uint32_t row = shape_.gathers ? any(shape_.ranks) : 0;
  return {rank, fmt::format("output[{}]", row * shape_.positions + position)};
}

void Places::set(const RankChunk& place, const Value& value) {
  values_[place] = value;
  if (!shape_.either || !place.name.starts_with("output")) return;
  for (uint32_t i = 0; i < shape_.positions; ++i) {
    const RankChunk input = {place.rank, fmt::format("input[{}]", i)};
    if (shape_.origin(input) == place && !(value == Value{i, {place.rank}})) values_.erase(input);
  }
}

Value Places::added(const Value& a, const Value& b) {
  Value sum = a;
  sum.ranks.insert(sum.ranks.end(), b.ranks.begin(), b.ranks.end());
  std::ranges::sort(sum.ranks);
  return sum;
}

}  // namespace mscclc::random_programs::soup
