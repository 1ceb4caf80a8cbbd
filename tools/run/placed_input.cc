#include "tools/run/placed_input.h"

#include <fmt/format.h>

#include <numeric>

#include "tools/run/rank_list.h"

namespace mscclc {

Result<void> PlacedInput::split_name() {
  const auto named = split_ranks(name);
  if (!named) return named.error();
  options.file = named->file;
  ranks = named->ranks;
  return {};
}

Result<void> PlacedInput::choose_ranks() {
  const uint32_t count = input.program.contract.ranks;
  if (ranks.empty()) {
    ranks.resize(count);
    std::iota(ranks.begin(), ranks.end(), 0u);
  }
  if (ranks.size() == count) return {};
  return Error{fmt::format("{}: the plan has {} ranks", name, count)};
}

std::vector<PlacedPlan> placed(const std::deque<PlacedInput>& inputs) {
  std::vector<PlacedPlan> plans;
  for (const PlacedInput& input : inputs) plans.push_back(input.placed());
  return plans;
}

Sources sources_of(const std::deque<PlacedInput>& inputs) {
  Sources sources;
  for (const PlacedInput& one : inputs) {
    for (FileId f = 0; f < one.input.sources.size(); ++f) {
      const SourceFile& file = one.input.sources.file(f);
      sources.add(file.name, file.text);
    }
  }
  return sources;
}

}  // namespace mscclc
