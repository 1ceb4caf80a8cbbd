#include "tools/run/placed_input.h"

#include <fmt/format.h>

#include <numeric>

#include "tools/run/rank_list.h"

namespace mscclc {

std::string PlacedInput::split_name() {
  FileOfRanks named;
  std::string error;
  if (!split_ranks(name, named, error)) return error;
  options.file = named.file;
  ranks = named.ranks;
  return "";
}

std::string PlacedInput::choose_ranks() {
  const uint32_t count = input.program.contract.ranks;
  if (ranks.empty()) {
    ranks.resize(count);
    std::iota(ranks.begin(), ranks.end(), 0u);
  }
  return ranks.size() == count ? "" : fmt::format("{}: the plan has {} ranks", name, count);
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
