// Inside Collectives and ReadyCall.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/collectives/loaded_plans.h"
#include "runtime/collectives/own_memory.h"
#include "runtime/collectives/registered_calls.h"
#include "runtime/collectives/where_ranks_run.h"
#include "runtime/observe/one_thread.h"

namespace mscclc {

/// A copy that a call does before or after its kernel.
struct CallCopy {
  void* to;
  const void* from;
  uint64_t bytes;
};

struct ReadyCall::State {
  const Collectives::State* owner = nullptr;
  StreamHandle stream = nullptr;
  Executable* executable = nullptr;  ///< nullptr: copies only, or nothing
  BoundCall bound;
  std::vector<CallCopy> before, after;
};

struct Collectives::State {
  State(Communicator& of, std::shared_ptr<PlanProvider> plans)
      : communicator(of), provider(std::move(plans)), loaded(of) {}
  /// Waits for calls that may use this layer's own memory.
  ~State();

  [[nodiscard]] bool start(const CollectivesOptions& options, Diagnostics& diagnostics);
  PlanRequest request(const CollectiveCall& planned, bool capturing) const;
  /// The plan for planned_call(). nullptr: reported.
  [[nodiscard]] std::shared_ptr<const PickedPlan> pick(const CollectiveCall& planned,
                                                       StreamHandle stream,
                                                       Diagnostics& diagnostics);
  LoadedPlans::Need need(const CollectiveCall& planned) const;
  [[nodiscard]] bool prepare(const CollectiveCall& call, StreamHandle stream,
                             ReadyCall::State& ready, Diagnostics& diagnostics);
  [[nodiscard]] bool launch(const ReadyCall::State& ready, Diagnostics& diagnostics);

  Communicator& communicator;
  const std::shared_ptr<PlanProvider> provider;
  WhereRanksRun where;
  uint32_t most_blocks = 0;     ///< CollectivesOptions::most_blocks
  bool compares_calls = false;  ///< MSCCLC_CHECK_CALLS: each launch waits for all ranks
  LoadedPlans loaded;
  RegisteredCalls registered;
  OwnMemory own;
  std::unique_ptr<StreamChain> chain;
  OneThread one_thread;

 private:
  [[nodiscard]] bool make_ready(uint64_t most, Diagnostics& diagnostics);
  [[nodiscard]] bool copy_here(const CollectiveCall& call, ReadyCall::State& ready,
                               Diagnostics& diagnostics) const;
  [[nodiscard]] bool place(const CollectiveCall& call, CollectiveCall& planned,
                           ReadyCall::State& ready, Diagnostics& diagnostics);
  void place_rows(const CollectiveCall& call, uint64_t row, uint8_t* sent, uint8_t* received,
                  ReadyCall::State& ready) const;
  [[nodiscard]] BoundCall bind(const CollectiveCall& planned, Executable& executable,
                               Diagnostics& diagnostics);
  std::optional<RegisteredCalls::Key> key_of(const CollectiveCall& planned,
                                             const Executable& executable,
                                             Diagnostics& diagnostics) const;
  [[nodiscard]] bool enqueue(const ReadyCall::State& ready, Diagnostics& diagnostics);

  friend class Collectives;
};

}  // namespace mscclc
