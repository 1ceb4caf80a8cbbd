// Schedules: small JSON files that make the simulator go wrong in one certain way, as evidence
// against a plan. A schedule holds what was run, and what was delayed (adversary.h), so that
// replaying it gives the same wrong result or hang every time.
//
//   {"schema": 1,
//    "plan": "90ab…",                     program_hash(): for this plan only
//    "bytes": 64, "dtype": "f32", "op": "sum", "in_place": false,
//    "calls": 3, "strands": 2, "seed": 0,
//    "holds": [
//     {"what": "access", "rank": 0, "call": 1, "op": 2, "strand": 0, "note": "put … at a.mscl:7:3"}
//    ]}
//
// `op` counts the ops of the rank's plan, block after block; `strand` is left out where all strands
// are meant, both where `what` is `call`, and `strand` where it is `proxy`. All other keys must be
// there.
//
// Of several plans, whose calls follow one another on the same ranks:
//
//   {"schema": 2,
//    "plans": [
//     {"plan": "90ab…", "ranks": [0, 1], "bytes": 64},
//     {"plan": "17c0…", "ranks": [1, 2], "bytes": 96}],
//    "dtype": "f32", "op": "sum", "in_place": false,
//    "strands": 2, "seed": 0,
//    "calls": [[0], [1, 0], [1]],         by rank: the plan of each of its calls
//    "holds": []}
//
// There, ranks are those of the world, `call` counts a rank's calls of whatever plan, and `op` the
// ops of the plan that the call is of. Plans are called equally often by all ranks that they have,
// and those over the same ranks in one order: nothing else is required of a set of plans.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/simulator/run.h"

namespace mscclc {

struct Schedule {
  /// A plan of several.
  struct Placed {
    std::string plan;  ///< program_hash()
    std::vector<uint32_t> ranks;
  };
  std::string plan;           ///< of one plan: program_hash()
  RunSpec spec;               ///< REQUIRES: in_place and adversary are there
  std::vector<Placed> plans;  ///< of several
};

/// 32 hex digits that identify a plan: what it does, not where its source is.
std::string program_hash(const Program& program);
/// What a hold is about, for its note: "put ch[0].inbox[0] <- input[0] (rank 0, tb 1) at
/// a.mscl:7:3".
std::string describe(const Program& program, const Hold& hold);
/// The same of a hold in a run of several plans.
std::string describe(std::span<const PlacedPlan> plans, const CallsByRank& order, const Hold& hold);

std::string write_schedule(const Schedule& schedule);
/// Reads a schedule for `program`; `name` is the file's. Errors name the JSON path.
[[nodiscard]] std::optional<Schedule> read_schedule(std::string_view json, const std::string& name,
                                                    const Program& program,
                                                    Diagnostics& diagnostics);
/// Reads a schedule for these plans, one or more, in the same order.
[[nodiscard]] std::optional<Schedule> read_schedule(std::string_view json, const std::string& name,
                                                    std::span<const PlacedPlan> plans,
                                                    Diagnostics& diagnostics);

}  // namespace mscclc
