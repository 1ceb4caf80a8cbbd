// What changed from one plan to another, as a reviewer reads it. Numbers and names of blocks,
// channels, scratch and semaphores do not count.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::diff {

/// Something known of a whole plan, in words: what is proved of it, its limits, what it takes.
struct Fact {
  std::string name, value;
};

/// A plan, and what is known of it.
struct PlanSide {
  const Program& program;
  std::vector<Fact> facts;
  /// More facts, which are asked for only if something else differs: numbers alone change, by a
  /// little, what a plan is predicted to take.
  std::function<std::vector<Fact>()> predicted = {};
};

/// The differences as text, one a line: facts and the program's head, then ranks, those with the
/// same change together. "" if there are none.
std::string differences(const PlanSide& a, const PlanSide& b);

}  // namespace mscclc::diff
