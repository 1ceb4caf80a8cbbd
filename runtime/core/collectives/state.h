// Inside Collectives and ReadyCall.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/core/collectives/arguments.h"
#include "runtime/core/collectives/loaded_plans.h"
#include "runtime/core/collectives/own_memory.h"
#include "runtime/core/collectives/registered_calls.h"
#include "runtime/core/collectives/where_ranks_run.h"
#include "runtime/support/observe/one_thread.h"

namespace mscclc {

/// A copy that a call does before or after its kernel.
struct CallCopy {
  void* to;
  const void* from;
  uint64_t bytes;
};

/// What is launched at once: a whole call, or a piece of it.
struct ReadyPiece {
  BoundCall bound;  ///< empty: copies only
  std::vector<CallCopy> before, after;
};

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

/// Elements of a message that are one call: of each row, where it has rows.
struct CallRange {
  uint64_t first = 0, count = 0;
};

struct Collectives::State {
  State(Communicator& of, std::shared_ptr<PlanProvider> plans, const CollectivesOptions& options)
      : communicator(of),
        one_thread(of.one_thread()),
        provider(std::move(plans)),
        piece_bytes(options.piece_bytes),
        loaded(of, options.piece_bytes) {}
  /// Waits for calls that may use this layer's own memory.
  ~State();

  [[nodiscard]] bool start(const CollectivesOptions& options, Diagnostics& diagnostics);
  PlanRequest request(const PlannedCall& planned, bool capturing) const;
  /// The plan for planned_call(), if there is one.
  [[nodiscard]] PlanChoice choose(const PlannedCall& planned, bool capturing,
                                  std::vector<PassedOver>* passed_over, Diagnostics& diagnostics);
  /// The same; none is reported.
  void report_no_plan(const PlannedCall& planned, bool capturing, Diagnostics& diagnostics);
  [[nodiscard]] PlanChoice pick(const PlannedCall& planned, StreamHandle stream,
                                Diagnostics& diagnostics);
  /// The calls that a call is made of.
  std::vector<CallRange> ranges_of(const CollectiveCall& planned, const PlanChoice& choice) const;
  /// One of them, as Executable::bind() takes it: its elements, with the pointers of the whole call
  /// moved on.
  CollectiveCall piece_of(const CollectiveCall& planned, const CallRange& range) const;
  LoadedPlans::Need need(const CollectiveCall& planned) const;
  /// `chosen`: nullptr: the plan is still to be picked.
  [[nodiscard]] bool prepare(const CollectiveCall& call, const PlanChoice* chosen,
                             StreamHandle stream, ReadyCall::State& ready,
                             Diagnostics& diagnostics);
  [[nodiscard]] ReadyCall prepare(const CollectiveCall& call, const PlanChoice* chosen,
                                  StreamHandle stream, Diagnostics& diagnostics);
  bool waits_for_ranks(const CollectiveCall& planned, const PlanChoice& choice);
  [[nodiscard]] bool launch(const ReadyCall::State& ready, Diagnostics& diagnostics);

  Communicator& communicator;
  const std::shared_ptr<OneThread> one_thread;  ///< the communicator's
  const std::shared_ptr<PlanProvider> provider;
  const uint64_t piece_bytes;
  WhereRanksRun where;
  SumOrder order = kDefaultOrder;  ///< of calls that do not say it
  uint32_t most_blocks = 0;        ///< PlanRequest::most_blocks
  bool any_order = false;          ///< CollectiveCall::any_order
  bool compares_calls = false;     ///< MSCCLC_CHECK_CALLS: each launch waits for all ranks
  LoadedPlans loaded;
  const std::shared_ptr<std::atomic<uint64_t>> unlaunched =
      std::make_shared<std::atomic<uint64_t>>(0);
  RegisteredCalls registered;
  OwnMemory own;
  std::shared_ptr<StreamChain> chain;

 private:
  [[nodiscard]] bool make_ready(uint64_t most, Diagnostics& diagnostics);
  void copy_here(const CollectiveCall& call, ReadyCall::State& ready) const;
  [[nodiscard]] bool prepare_piece(const CollectiveCall& call, const CollectiveCall& planned,
                                   const CallRange& range, ReadyCall::State& ready,
                                   Diagnostics& diagnostics);
  [[nodiscard]] bool place(const CollectiveCall& call, const CallRange& range,
                           CollectiveCall& planned, ReadyPiece& ready, Diagnostics& diagnostics);
  void place_rows(const CollectiveCall& call, const CallRange& range, uint8_t* sent,
                  uint8_t* received, ReadyPiece& ready) const;
  [[nodiscard]] BoundCall bind(const CollectiveCall& piece, Executable& executable,
                               Diagnostics& diagnostics);
  std::optional<RegisteredCalls::Key> key_of(const CollectiveCall& piece,
                                             const Executable& executable,
                                             Diagnostics& diagnostics) const;
  [[nodiscard]] bool enqueue(const ReadyPiece& piece, const ReadyCall::State& ready,
                             Diagnostics& diagnostics);
  [[nodiscard]] bool enqueue(const ReadyCall::State& ready, Diagnostics& diagnostics);

  friend class Collectives;
};

}  // namespace mscclc
