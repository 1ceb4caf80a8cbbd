// Random sets of plans whose calls follow one another on the ranks of one world: what they share,
// in which orders they are called, and calls of one plan with messages of several sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/prove/prove.h"
#include "tests/random_programs/trial.h"

namespace mscclc::random_programs {

struct SetMember {
  RandomProgram random;
  std::vector<uint32_t> ranks;  ///< by rank of the plan: rank of the world
};

struct RandomSet {
  std::vector<SetMember> members;
  CallOrder order = CallOrder::one;
  std::string text() const;
};

/// Set number `piece` of a seed.
RandomSet random_set(uint64_t seed, uint64_t piece);
/// Likewise, of plans whose sentinel slots lie on one another's.
RandomSet random_overlay(uint64_t seed, uint64_t piece);

struct SetFamily {
  std::string_view name;
  RandomSet (*make)(uint64_t seed, uint64_t piece);
};
std::span<const SetFamily> set_families();
/// Null: there is none of that name.
const SetFamily* find_set_family(std::string_view name);

/// Judges a set: malformed is one with a plan that is not proved alone, a hole one that is proved,
/// and of which calls go wrong on the simulator, in orders that callers may choose.
Tried try_set(const RandomSet& set, uint64_t number, const TrialOptions& options);

/// The same of plans on the same ranks.
Tried try_together(std::span<const Program> plans, uint64_t number, const TrialOptions& options);

/// What is wrong with calls of a program in a row that differ in size; nothing if all goes well.
std::optional<std::string> fault_of_sizes(const Program& program, uint64_t number, uint32_t runs);

}  // namespace mscclc::random_programs
