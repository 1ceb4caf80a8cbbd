// The prover: is a plan right for every schedule, message size and number of calls in a row?
//
// It runs the plan once with symbols instead of data (run.h) and decides from what every process
// knows of the others. docs/verification.md has the model, the rules and the argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/program.h"
#include "ir/proof.h"

namespace mscclc {

/// Two ops of a refused plan that nothing orders, or one op and the caller: where to look for a
/// schedule that goes wrong. `op`: index in Program::ranks[rank].ops.
struct Unordered {
  struct Place {
    uint32_t rank = 0, op = 0, call = 0;
  };
  Place first;
  std::optional<Place> second;
};

struct ProveOptions {
  /// In plans of so many ops and more, look whether some ranks stand for all (symmetry.h). Smaller
  /// ones are proved rank by rank: that costs little, and a mistake is told of the rank that a
  /// reader meets first.
  uint64_t symmetry_from = 20000;
  /// Where calls disturb each other in scratch, look whether a few copies of the buffer would help,
  /// by proving that. Else nothing is said of copies.
  bool try_copies = false;
  /// Filled with what reported races are between, if there is one.
  std::vector<Unordered>* unordered = nullptr;
};

/// Proves a plan, or reports what is wrong with it, or what could not be decided, as errors.
/// REQUIRES: program.split, and its structure is in order.
Proof prove(const Program& program, Diagnostics& diagnostics, const ProveOptions& options = {});

/// One of several plans whose calls follow one another, and what they share: the count of calls
/// (which packets are marked with, and copies of scratch are chosen by), channels, and scratch if
/// they say so (`launch reuse_scratch`).
struct SharedPlan {
  const Program* program = nullptr;
  std::string name;             ///< for messages
  std::vector<uint32_t> ranks;  ///< which ranks of the world its ranks are
};

/// In which orders ranks may call plans that run on different ranks.
enum class CallOrder : uint8_t {
  own,  ///< each rank in its own
  one   ///< there is one order of all calls, of which each rank makes its part
};

/// Calls of a set of plans that are not proved: where to look for a schedule that goes wrong.
struct RefusedCalls {
  /// By rank of the world: the plan of each of its calls. Empty: refused whatever the order.
  std::vector<std::vector<uint32_t>> order;
  /// Here `rank` is of the world, `call` counts the rank's calls of whatever plan, and `op` is an
  /// index in the ops of the plan that the call is of.
  std::vector<Unordered> unordered;
};

/// Proves that calls of these plans do not disturb one another, in whatever order they come, or
/// reports what is wrong, and fills `refused` if it is there. Plans over the same ranks are called
/// in one order by all. REQUIRES: each is proved alone; SharedPlan::ranks are different numbers,
/// one for each rank.
[[nodiscard]] bool prove_together(std::span<const SharedPlan> plans, CallOrder call_order,
                                  Diagnostics& diagnostics, RefusedCalls* refused = nullptr);

}  // namespace mscclc
