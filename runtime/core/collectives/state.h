// Inside Collectives and ReadyCall.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/core/collectives/arguments.h"
#include "runtime/core/collectives/call_pieces.h"
#include "runtime/core/collectives/loaded_plans.h"
#include "runtime/core/collectives/own_memory.h"
#include "runtime/core/collectives/plan_chooser.h"
#include "runtime/core/collectives/registered_calls.h"
#include "runtime/support/observe/one_thread.h"

namespace mscclc {

/// Pieces that are ready and still to be launched, here and of all calls.
class Unlaunched {
 public:
  explicit Unlaunched(std::shared_ptr<std::atomic<uint64_t>> all) : all_(std::move(all)) {}
  ~Unlaunched() { launched(); }
  Unlaunched(const Unlaunched&) = delete;
  Unlaunched& operator=(const Unlaunched&) = delete;
  uint64_t of_all() const { return *all_; }
  void add() const {
    ++own_;
    ++*all_;
  }
  void launched() const { *all_ -= std::exchange(own_, 0); }

 private:
  const std::shared_ptr<std::atomic<uint64_t>> all_;  ///< calls may be destroyed by any thread
  mutable uint64_t own_ = 0;
};

struct ReadyCall::State {
  explicit State(const std::shared_ptr<std::atomic<uint64_t>>& unlaunched)
      : unlaunched(unlaunched) {}
  const Unlaunched unlaunched;
  const Collectives::State* owner = nullptr;
  StreamHandle stream = nullptr;
  Executable* executable = nullptr;  ///< nullptr: copies only, or nothing
  std::vector<ReadyPiece> pieces;
};

struct Collectives::State {
  State(Communicator& of, std::shared_ptr<PlanProvider> plans, const CollectivesOptions& options)
      : communicator_(of),
        one_thread_(of.one_thread()),
        chooser_(of, std::move(plans), options.piece_bytes, loaded_),
        loaded_(of, options.piece_bytes) {}
  /// Waits for calls that may use this layer's own memory.
  ~State();

  [[nodiscard]] bool start(const CollectivesOptions& options, Diagnostics& diagnostics);

  Communicator& communicator() const { return communicator_; }
  OneThread& one_thread() const { return *one_thread_; }  ///< the communicator's
  PlanChooser& chooser() { return chooser_; }
  RegisteredCalls& registered() { return registered_; }
  CollectivesUse use() const { return {loaded_.count(), own_.bytes(), registered_.count()}; }
  /// Each launch waits for all ranks.
  bool compares_calls() const { return compares_calls_; }
  /// What planned_call() gives for this rank.
  std::optional<PlannedCall> planned(const CollectiveCall& call) const;

  [[nodiscard]] bool call(const CollectiveCall& call, StreamHandle stream,
                          Diagnostics& diagnostics);
  /// `chosen`: nullptr: the plan is still to be picked. Empty: reported.
  [[nodiscard]] ReadyCall prepare(const CollectiveCall& call, const PlanChoice* chosen,
                                  StreamHandle stream, Diagnostics& diagnostics);
  bool waits_for_ranks(const CollectiveCall& planned, const PlanChoice& choice);
  /// Collectives::no_rank_chooses(), of the call that a plan is to serve.
  [[nodiscard]] bool no_rank_picks(const CollectiveCall& wanted, StreamHandle stream,
                                   Diagnostics& why);
  [[nodiscard]] bool launch(const ReadyCall::State& ready, Diagnostics& diagnostics);

 private:
  [[nodiscard]] bool make_ready(uint64_t most, Diagnostics& diagnostics);
  CollectiveCall piece_of(const CollectiveCall& planned, const CallRange& range) const;
  void copy_here(const CollectiveCall& call, ReadyCall::State& ready) const;
  [[nodiscard]] bool prepare(const CollectiveCall& call, const PlanChoice* chosen,
                             StreamHandle stream, ReadyCall::State& ready,
                             Diagnostics& diagnostics);
  [[nodiscard]] PlanChoice pick(const PlannedCall& wanted, StreamHandle stream,
                                Diagnostics& diagnostics);
  [[nodiscard]] bool prepare_piece(const CollectiveCall& call, const CollectiveCall& planned,
                                   const CallRange& range, ReadyCall::State& ready,
                                   Diagnostics& diagnostics);
  [[nodiscard]] bool place(const CollectiveCall& call, const CallRange& range,
                           CollectiveCall& planned, ReadyPiece& ready, Diagnostics& diagnostics);
  [[nodiscard]] BoundCall bind_alone(const CollectiveCall& piece, Executable& executable,
                                     Diagnostics& diagnostics);
  [[nodiscard]] BoundCall bind(const CollectiveCall& piece, Executable& executable,
                               Diagnostics& diagnostics);
  std::optional<RegisteredCalls::Key> key_of(const CollectiveCall& piece,
                                             const Executable& executable,
                                             Diagnostics& diagnostics) const;
  [[nodiscard]] bool enqueue(const ReadyPiece& piece, const ReadyCall::State& ready,
                             Diagnostics& diagnostics);
  /// MSCCLC_CHECK_CALLS.
  [[nodiscard]] bool meet_without_plan(Diagnostics& diagnostics);

  Communicator& communicator_;
  const std::shared_ptr<OneThread> one_thread_;
  bool any_order_ = false;       ///< CollectiveCall::any_order
  bool compares_calls_ = false;  ///< MSCCLC_CHECK_CALLS
  PlanChooser chooser_;
  LoadedPlans loaded_;
  const std::shared_ptr<std::atomic<uint64_t>> unlaunched_ =
      std::make_shared<std::atomic<uint64_t>>(0);
  RegisteredCalls registered_;
  OwnMemory own_;
  std::shared_ptr<StreamChain> chain_;
};

}  // namespace mscclc
