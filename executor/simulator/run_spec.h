// What a test run of a plan is, and what came of it: on the simulator (run.h), and at each rank of
// a job on a device (runtime/core/runner), which has no schedules and no adversary.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/simulator/machine/adversary.h"
#include "ir/program/program.h"

namespace mscclc {

/// By rank of the world: the plan of each of its calls.
using CallsByRank = std::vector<std::vector<uint32_t>>;

struct RunSpec {
  /// Message size as `select sizes` and nccl-tests tables mean it: bytes of the larger of input and
  /// output. Rounded down to whole elements in every rank's part (see RunResult::bytes).
  uint64_t bytes = 0;
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;           ///< ignored by collectives that reduce nothing
  std::optional<Dtype> accumulate = {};  ///< type to add up in; default: the data type's own
  std::optional<bool> in_place = {};     ///< default: what the contract demands, else out of place
  uint32_t iterations = 1;               ///< calls in succession, without a barrier between ranks
  /// 0: every block runs until it must wait, in order. Others: a schedule made from the number.
  uint64_t schedule_seed = 0;
  /// Sums and the row functions that they are handed to are steps of their own, as machines may
  /// have it (RowSteps in lower.h); default: as the schedule's number says.
  std::optional<bool> rows_apart = {};
  /// Strands and late accesses (adversary.h): at random under a seed other than 0.
  std::optional<Adversary> adversary = {};
  bool check = true;  ///< fill inputs and compare outputs in every call
  /// Scratch lies as a message of so many bytes needs it, where that is more than is sent: so it is
  /// when calls of several sizes share it.
  uint64_t capacity = 0;

  // Several plans: in place of `bytes` and `iterations`. In place run those that may, and those
  // that must.
  std::vector<uint64_t> plan_bytes = {};  ///< by plan
  /// REQUIRES: plans are called at ranks that they have.
  CallsByRank order = {};
};

enum class RunStatus : uint8_t {
  right,    ///< ran, and every output is what the contract promises
  wrong,    ///< ran, and elements or guard bytes are wrong (see the diagnostics)
  hung,     ///< no thread block could continue (see the diagnostics)
  refused,  ///< not run: the plan is broken, or cannot do this size, type or reduction
};

struct RunResult {
  RunStatus status = RunStatus::refused;
  uint64_t bytes = 0;  ///< message size that was run
  uint64_t count = 0;  ///< elements of the message
  uint64_t wrong = 0;  ///< wrong elements, all ranks and calls together
  double seconds = 0;  ///< time of one call, without filling and checking
  bool in_place = false;
  /// Several plans: of each its size, wrong elements and place; their `seconds` are 0, those of the
  /// whole are of all calls together.
  std::vector<RunResult> plans = {};
};

}  // namespace mscclc
