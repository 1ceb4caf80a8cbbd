// One of several FILEs that run on the same ranks, as 'mscclc verify --together' and 'mscclc run'
// with a schedule take them: a program or plan, and the ranks of the world that it is on.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "executor/simulator/cluster_set.h"
#include "ir/support/result.h"
#include "tools/io/input.h"

namespace mscclc {

struct PlacedInput {
  PlacedInput(const InputOptions& options, std::string name)
      : name(std::move(name)), options(options), input(this->options) {}
  PlacedInput(const PlacedInput&) = delete;

  /// What --together and messages call it: FILE or FILE@RANKS. Before load(): takes it apart.
  Result<void> split_name();
  /// Once the program is there: the ranks after '@', or as many as it has, from 0.
  Result<void> choose_ranks();
  PlacedPlan placed() const { return {&input.program, name, ranks}; }

  const std::string name;
  InputOptions options;
  Input input;
  std::vector<uint32_t> ranks;  ///< of the world
};

std::vector<PlacedPlan> placed(const std::deque<PlacedInput>& inputs);
/// The text of all, for diagnostics that are about several.
Sources sources_of(const std::deque<PlacedInput>& inputs);

}  // namespace mscclc
