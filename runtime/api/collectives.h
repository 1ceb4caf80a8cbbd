// Collectives by name: what to do, how many elements, of which type, where. This layer picks the
// plan, loads it when it is first needed, binds it to the buffers and launches it.
//
//   auto collectives = Collectives::create(*communicator, provider, {}, problems);
//   collectives->call({.kind = CollectiveKind::allreduce, .count = n, .dtype = Dtype::f16,
//                      .input = in, .output = out}, stream, problems);   // on all ranks
//
// What decides. All ranks must make the same calls in the same order, and everything that picks a
// plan must be the same on all of them: kind, count, type, reduction, order, root, shift,
// `registered`, `tag`, whether the stream is captured, and of collectives without a root whether
// the call is in place. Otherwise pointers and alignment decide nothing.
//
// When ranks wait for one another. A call waits for the other ranks on the host only if it is the
// first to need its plan, or the first whose registered buffers its plan joins at a switch;
// otherwise it returns when the work is queued. One thread that drives several ranks therefore
// makes their calls with call_together().
//
// Order. Calls of one communicator run in the order in which they are made, whatever their streams.
// In a capture the same holds for the calls of that capture. A graph is replayed after the calls
// made before its launch, and before those made after it (Replays::ordered). All ranks must launch
// graphs and make calls in one order.
//
// Captures. Every call may be captured in a graph, also the first that needs its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/contract/collectives.h"
#include "ir/contract/order.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"
#include "runtime/api/call.h"
#include "runtime/api/communicator.h"
#include "runtime/api/plan_provider.h"
#include "runtime/api/stream.h"

namespace mscclc {

class StreamChain;

/// Whose buffers are given: of a question about a call, those that are nullptr lie apart.
enum class BuffersOf : uint8_t { call, question };

struct CollectivesOptions {
  /// Allreduces of up to so many bytes find their plans loaded: create() does it.
  uint64_t ready_bytes = 0;
  /// A message of more bytes, if its plan would need memory for all of it, is made in pieces of at
  /// most so many, one after the other, each with the plan that is best for a piece, or with the
  /// call's own, if that was registered by itself. A power of two; the same on all ranks.
  uint64_t piece_bytes = uint64_t{32} << 20;
  /// Of calls that do not say it; nullopt: as MSCCLC_ORDER says. The same on all ranks.
  std::optional<SumOrder> order = {};
  /// PlanRequest::most_blocks of all calls. The same on all ranks.
  uint32_t most_blocks = 0;
  /// So many objects, this one counted, make calls on these GPUs in an order that is not the same
  /// on all ranks, as those of messages do: plans then have blocks that have room beside those of
  /// the others, as else one might wait for another's room. The same on all ranks.
  uint64_t beside = 1;
  /// Graphs that have captured calls are ordered with calls beside them; ignored: the caller does
  /// it. The same on all ranks.
  Replays replays = Replays::ordered;
  /// The chain of what must stay in order with these calls though others make it; `replays` is the
  /// chain's then. nullptr: there is nothing like that.
  std::shared_ptr<StreamChain> chain = nullptr;
};

/// The plan for a call, and how much of the message it does at once.
struct PlanChoice {
  std::shared_ptr<const PickedPlan> picked;  ///< nullptr: there is none
  uint64_t count = 0;                        ///< elements, as CollectiveCall::count
};

/// A call that needs no other rank any more to be launched.
class ReadyCall {
 public:
  struct State;
  ReadyCall() = default;
  explicit ReadyCall(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// What loading has cost so far.
struct CollectivesUse {
  uint64_t plans = 0;      ///< executables that are loaded
  uint64_t own_bytes = 0;  ///< device memory of this layer's own: rows of alltoallv, barrier
  uint64_t cached = 0;     ///< bound calls of registered buffers that are kept
};

/// The collectives of one rank. Thread safety: the communicator's.
class Collectives {
 public:
  /// Collective. The communicator must outlive it; while it lives, everything that it has loaded
  /// stays, so that graphs may replay its calls. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<Collectives> create(Communicator& communicator,
                                                           std::shared_ptr<PlanProvider> provider,
                                                           const CollectivesOptions& options,
                                                           Diagnostics& diagnostics);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// The plan that would serve a call, which nothing but facts of all ranks decides; it is not
  /// loaded. nullptr without an error: no plan does; `passed_over`, if any, says why not. The
  /// buffers are not looked at. Calls that need no plan (one rank, nothing to move) have none: see
  /// needs_plan(). Local.
  [[nodiscard]] std::shared_ptr<const PickedPlan> choose(const CollectiveCall& call, bool capturing,
                                                         std::vector<PassedOver>* passed_over,
                                                         Diagnostics& diagnostics);
  /// The same, for prepare() and waits_for_ranks() of this call: they need not choose again.
  [[nodiscard]] PlanChoice choose_once(const CollectiveCall& call, bool capturing,
                                       std::vector<PassedOver>* passed_over,
                                       Diagnostics& diagnostics);
  /// Collective with prepare() of ranks that have a plan for the call, on one that has none, for
  /// the reasons in `why`, as it may be on this rank alone: all learn of them. True: no rank has a
  /// plan, so another library may make the call. REQUIRES: needs_plan(), and check().
  [[nodiscard]] bool no_rank_chooses(const CollectiveCall& call, StreamHandle stream,
                                     Diagnostics& why);
  /// False: the call is made without a plan, by copies or not at all.
  bool needs_plan(const CollectiveCall& call) const;

  /// Checks the arguments of a call, or of a question about one. Local. Errors (bad-call, overlap).
  [[nodiscard]] bool check(const CollectiveCall& call, Diagnostics& diagnostics,
                           BuffersOf buffers = BuffersOf::call) const;
  /// prepare(), then launch().
  [[nodiscard]] bool call(const CollectiveCall& call, StreamHandle stream,
                          Diagnostics& diagnostics);
  /// True if prepare() would wait for the other ranks, or if another thread is inside. Local.
  bool waits_for_ranks(const CollectiveCall& call, StreamHandle stream);
  bool waits_for_ranks(const CollectiveCall& call, const PlanChoice& choice);
  /// Checks a call, picks its plan, loads it if it is the first to need it, and binds it. Errors:
  /// bad-call (an argument), no-plan, and those of Communicator::load() and Executable::bind().
  [[nodiscard]] ReadyCall prepare(const CollectiveCall& call, StreamHandle stream,
                                  Diagnostics& diagnostics);
  /// The same with the plan that choose_once() gave. REQUIRES: there is one, if the call needs one.
  [[nodiscard]] ReadyCall prepare(const CollectiveCall& call, const PlanChoice& choice,
                                  StreamHandle stream, Diagnostics& diagnostics);
  /// Puts a prepared call on the stream that it was prepared for. Local; does not wait.
  [[nodiscard]] bool launch(const ReadyCall& call, Diagnostics& diagnostics);
  /// True if launch() waits for the other ranks after all, to compare calls (MSCCLC_CHECK_CALLS).
  bool launches_wait() const;

  /// Collective: makes memory known to all ranks for CollectiveCall::registered; sizes may differ.
  /// Its number; nullopt: reported.
  [[nodiscard]] std::optional<uint64_t> register_buffer(void* address, uint64_t bytes,
                                                        Diagnostics& diagnostics);
  /// What `rank` has registered under that number. Local. nullopt: reported (bad-call).
  [[nodiscard]] std::optional<RankMemory> registered(uint64_t number, uint32_t rank,
                                                     Diagnostics& diagnostics);
  /// To be called on all ranks, before the memory is freed. False: reported (bad-call).
  [[nodiscard]] bool deregister_buffer(uint64_t number, Diagnostics& diagnostics);

  Communicator& communicator() const;
  CollectivesUse use() const;

 private:
  friend class ReadyCall;
  struct State;
  explicit Collectives(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A call of one of the ranks that a thread drives.
struct RankCall {
  Collectives* rank = nullptr;
  CollectiveCall call;
  StreamHandle stream = nullptr;
};

/// Makes calls of one or several ranks of this process, each rank's in the order given. First all
/// are prepared, on a thread for each rank where they wait for one another, then all are launched,
/// in the order given: one that cannot be prepared leaves nothing launched.
[[nodiscard]] bool call_together(std::span<const RankCall> calls, Diagnostics& diagnostics);

}  // namespace mscclc
