// Runs a plan on the simulator and checks what it gives: what `mscclc run` and the tests call.
//
//   Simulator runner(program);
//   RunResult result = runner.run({.bytes = 1 << 20, .op = ReduceOp::max}, diagnostics);
//
// A runner lowers its program once and keeps memory and stacks from run to run, so that many runs
// of one program (sizes, types, schedules) cost little more than the data they move. It also runs
// several plans whose calls follow one another on the same ranks.
#pragma once

#include <memory>
#include <span>

#include "executor/simulator/cluster_set.h"
#include "executor/simulator/run_spec.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

class Simulator {
 public:
  /// REQUIRES: the program outlives the runner. run() reports one that is not split.
  explicit Simulator(const Program& program);
  /// Several plans, or one. REQUIRES: the same of each; each has as many `ranks` as it needs.
  explicit Simulator(std::span<const PlacedPlan> plans);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// Runs `spec.iterations` calls on all ranks, or those of several plans that `spec.order` says,
  /// on new memory. Every result other than `right` comes with errors in `diagnostics`.
  [[nodiscard]] RunResult run(const RunSpec& spec, Diagnostics& diagnostics);
  /// See Cluster::use_stacks(). REQUIRES: one plan.
  void use_stacks(FiberPool& stacks);
  /// Forgets earlier runs: calls count from 0 again, on new memory.
  void restart();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One run of a program that is not run again. `stacks`: kept by the caller for the next program,
/// as a system takes as long to make many of them as a small run does.
[[nodiscard]] RunResult simulate(const Program& program, const RunSpec& spec,
                                 Diagnostics& diagnostics, FiberPool* stacks = nullptr);

}  // namespace mscclc
