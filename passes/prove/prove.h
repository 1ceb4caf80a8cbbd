// The prover: is a plan right for every schedule, message size and number of successive calls?
//
// It runs the plan once with symbols instead of data (run.h) and decides from what every process
// knows of the others. docs/design/proofs.md has the model, the rules and the argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/program/proof.h"
#include "passes/prove/model/shared_plan.h"
#include "passes/prove/model/unordered.h"
#include "passes/prove/run/sum_expressions.h"

namespace mscclc {

struct ProveOptions {
  /// In plans of so many ops and more, look whether some blocks (representatives.h), and some ranks
  /// (symmetry.h), stand for all. Smaller ones are proved with all of them, which costs little.
  uint64_t symmetry_from = 500;
  /// Where calls disturb each other in scratch, look whether a few copies of the buffer would help,
  /// by proving that. Otherwise copies are not mentioned.
  bool try_copies = false;
  /// If set: filled with the ops between which races were reported.
  std::vector<Unordered>* unordered = nullptr;
  /// If set: filled with what the sums of a plan that is proved are. That takes one more run,
  /// unless the contracts that they keep say it.
  SumExpressions* sums = nullptr;
};

/// Proves a plan, or reports what is wrong with it, or what could not be decided, as errors.
/// REQUIRES: program.split, and its structure is in order.
Proof prove(const Program& program, Diagnostics& diagnostics, const ProveOptions& options = {});

/// Proof::sums of a plan of which all else is proved. "" also for sums that no contract describes
/// of plans with 20,000 ops and more.
[[nodiscard]] std::string sums_of(const Program& program, const Proof& proof);

/// Does every access to scratch, by whatever rank, lie between the begin and the end of a call of
/// the rank that has the scratch, as it must for the caller's buffers? Then plans whose calls
/// follow one another at every rank may have the same scratch (docs/design/proofs.md, "What the
/// runtime shares"). False for plans with packets, and where memory does not suffice to find out.
/// REQUIRES: the plan is proved.
[[nodiscard]] bool scratch_in_call(const Program& program);

/// In which orders ranks may call plans that run on different ranks.
enum class CallOrder : uint8_t {
  own,  ///< each rank in its own
  one   ///< there is one order of all calls, of which each rank makes its own
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
