// Runs a plan on the simulator and checks what it gives: what `mscclc run` and the tests call.
//
//   Simulator runner(program);
//   RunResult result = runner.run({.bytes = 1 << 20, .op = ReduceOp::max}, diagnostics);
//
// A runner lowers its program once and keeps memory and stacks from run to run, so that many runs
// of one program (sizes, types, schedules) cost little more than the data they move. It also runs
// several plans whose calls follow one another on the same ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/simulator/cluster_set.h"
#include "executor/simulator/machine/adversary.h"
#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

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
  /// Lanes and late accesses (adversary.h): at random under a seed other than 0.
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
  wrong,    ///< ran, and elements or guard bytes are wrong (told in the diagnostics)
  hung,     ///< no thread block could go on (told in the diagnostics)
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

class Simulator {
 public:
  /// REQUIRES: program.split; the program outlives the runner.
  explicit Simulator(const Program& program);
  /// Several plans, or one. REQUIRES: the same of each; each has as many `ranks` as it needs.
  explicit Simulator(std::span<const PlacedPlan> plans);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// Runs `spec.iterations` calls on all ranks, or those of several plans that `spec.order` says,
  /// on new memory. Every result other than `right` comes with errors in `diagnostics`.
  [[nodiscard]] RunResult run(const RunSpec& spec, Diagnostics& diagnostics);
  /// Forgets earlier runs: calls count from 0 again, on new memory.
  void restart();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One run of a program that is not run again.
[[nodiscard]] RunResult simulate(const Program& program, const RunSpec& spec,
                                 Diagnostics& diagnostics);

}  // namespace mscclc
