// The search for witnesses: given ops that a plan does not order, find a schedule under which the
// simulator gives a wrong result or hangs. What is returned has been run, so it is evidence.
#pragma once

#include <optional>
#include <span>

#include "executor/simulator/schedules/schedule.h"

namespace mscclc {

/// Ops that should be ordered and are not, or one op that something is wrong with. `op` is an index
/// in Program::ranks[rank].ops. Of several plans: `rank` is of the world, `call` counts the rank's
/// calls, and `op` those of the plan that the call is of.
struct Suspect {
  struct OpOfCall {
    uint32_t rank, op;
    uint64_t call = 0;
    bool operator==(const OpOfCall&) const = default;
  };
  OpOfCall first;
  std::optional<OpOfCall> second;
};

struct WitnessSearch {
  uint32_t calls = 3;    ///< in a row; more if a suspect is of a later call
  uint32_t seeds = 100;  ///< random runs, once nothing else has helped
  double seconds = 10;   ///< to spend on the search, about
  size_t suspects = 16;  ///< of those given, the first so many
};

struct Witness {
  Schedule schedule;
  RunStatus status;  ///< wrong or hung
};

/// Finding nothing does not mean that there is nothing. REQUIRES: program.split, a contract.
std::optional<Witness> find_witness(const Program& program, std::span<const Suspect> suspects,
                                    const WitnessSearch& search = {});
/// Of several plans. `order`: the calls in which suspects are; if it is empty, there are none, and
/// what is tried are calls of any two plans in turn. REQUIRES: the same of each.
std::optional<Witness> find_witness(std::span<const PlacedPlan> plans, const CallsByRank& order,
                                    std::span<const Suspect> suspects,
                                    const WitnessSearch& search = {});

}  // namespace mscclc
