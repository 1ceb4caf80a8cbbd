// Collectives at run time: ranks that have met load a plan together and call it on their streams.
//
//   // tests/runtime/example_test.cc compiles these lines, and runs them.
//   std::string all_reduce(std::unique_ptr<Bootstrap> bootstrap, std::shared_ptr<Device> device,
//                          std::string_view json, const void* in, void* out, StreamHandle stream) {
//     Diagnostics problems;
//     const auto failed = [&] { return render_text(problems, Sources{}); };
//     const auto communicator = Communicator::create(std::move(bootstrap), device, {}, problems);
//     if (communicator == nullptr) return failed();
//     const auto plan = load_plan(json, "allreduce.json", problems);
//     if (plan == nullptr) return failed();
//     const auto allreduce = communicator->load(plan, {.max_bytes = 64 << 20}, problems);
//     if (allreduce == nullptr) return failed();
//     const BoundCall call = allreduce->bind(
//         {.bytes = 4096, .dtype = Dtype::f16, .input = in, .output = out}, problems);
//     if (!call) return failed();
//     // Any number of times; does not wait.
//     if (!allreduce->launch(call, stream, problems)) return failed();
//     // Waits, and reports what has gone wrong.
//     return communicator->synchronize(stream, problems) ? "" : failed();
//   }
//
// Every rank is a Communicator with a Bootstrap (how it finds the others) and a Device (where it
// runs). *Collective* functions must be called by all ranks, in the same order; if one rank cannot
// do its part, all ranks get an error that says which and why, and can continue.
//
// Plans, calls and buffers share nothing: an Executable has its own scratch memory, counts and
// channels, so calls of several executables may run at once, on one stream or on several, unless
// they are loaded to be in turn (LoadOptions::in_turn). But calls share the room of their GPUs, and
// wait for one another there: all ranks must launch calls in one order, whatever their streams,
// executables and communicators. A call that does not fit beside those launched before it begins
// when they have begun, so nothing that they wait for on their streams may wait for it. Calls of
// one capture are ordered in the same way. Graphs that are replayed beside other calls, and kernels
// of other libraries that wait for ranks, escape this: order them on all ranks, or leave room for
// both (docs/runtime.md, "Calls share GPUs").
//
// Errors. nullptr, an empty BoundCall or false: the reason is in the diagnostics. If a rank dies,
// gives up, or a wait takes longer than CommunicatorOptions::timeout, all waits of all calls of the
// communicator end, synchronize() and check() of every rank report it, and nothing more can be
// loaded or launched. No kernel is left running. A watchdog notices such a failure even if check()
// is not called, notifies the other ranks, and writes down the last calls (docs/runtime.md).
//
// Thread safety. A Communicator, with everything that it has made, is for one thread at a time, any
// thread; a second one that enters meanwhile gets an error (two-threads) and changes nothing. Only
// abort() and has_failed() may be called from any thread at any time. Communicators are independent
// of each other. A child of fork() gets an error (after-fork), and does not destroy what it has
// inherited.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/dtypes.h"
#include "ir/support/link_kind.h"
#include "runtime/api/call.h"
#include "runtime/api/proof_policy.h"
#include "runtime/api/stream.h"

namespace mscclc {

class Bootstrap;
class Device;
class OneThread;
struct Program;

struct CommunicatorOptions {
  /// How long a wait of a running call may take; 0: as MSCCLC_TIMEOUT says (docs/environment.md);
  /// 49 days or more: forever.
  std::chrono::milliseconds timeout{0};
  /// The process ends (SIGABRT) as soon as blocks of this rank have given up, as another rank
  /// failed or a wait took too long, unless an error has reached the program before: what follows
  /// on the stream would take incomplete data for whole. A rank that waits for nothing goes on.
  /// Each rank's own affair.
  bool ends_process = false;
};

struct LoadOptions {
  /// The largest message (the larger of input and output, in bytes) of any call. Scratch memory is
  /// laid out for it.
  uint64_t max_bytes = uint64_t{64} << 20;
  /// The type of the calls' elements. Matters only for plans with sentinel packets: these recognise
  /// data element by element, and serve only types of this width.
  Dtype dtype = Dtype::f32;
  /// Plans whose ops address the caller's buffers of other ranks. True: buffers are mapped where
  /// they are (register_buffer()) and bind() is collective. False: calls go through buffers of the
  /// executable, with a copy in and out; bind() is local and takes any pointers.
  bool zero_copy = false;
  /// A promise: on every rank, calls of all executables of this communicator that are loaded so
  /// follow one another, whatever their streams, in graphs, too. They then share staging, and what
  /// scratch they can.
  bool in_turn = false;
  /// A promise: on every rank, calls of all executables that are loaded so, or to be in turn, are
  /// made in the same order, though they may run at once. It is checked: a call out of order is an
  /// error with both calls (call-differs).
  bool in_order = false;
  /// The file that the plan was read from; it need not be there. Beside PLAN.json may lie
  /// PLAN.sm_90.cubin, with kernels that were compiled for this plan and architecture: they run
  /// what calls they can, in less time and with the same bits (docs/compiled_kernels.md). Whether
  /// there are any is each rank's affair. Without them, or "": a GPU's are compiled in the
  /// background (MSCCLC_KERNELS), and taken over when a plan is loaded, or, with in_turn, between
  /// two calls.
  std::string plan_file = {};
  /// False: the interpreter runs all calls.
  bool compiled_kernels = true;
  /// Whether the plan must be proved right: load() does not trust the file's claim, but proves the
  /// plan, unless it is known to this binary or was proved before. nullopt: as MSCCLC_PROOF says.
  std::optional<ProofPolicy> proof = {};
  /// Calls are to keep to the order of sums that the plan promises (Contract::order): where it is
  /// more than 'replicated', those of a type whose sums the plan rounds on the way are an error
  /// (sum-order). False: they ask for no more than 'replicated'.
  bool keeps_order = true;
  /// The call that needs the plan, in words: where ranks' calls differ, the error shows the calls
  /// and not only that the plans differ (call-differs). "": it is not known.
  std::string call = {};
  /// Which of this rank's launches needs the plan: 1: its next, 2: the one after that … Ranks of
  /// its machine that launch something else then learn of it, instead of waiting for one another.
  /// 0: it is not known.
  uint64_t calls_ahead = 0;
};

/// The memory that grows with LoadOptions::max_bytes when a plan is loaded: of the rank that needs
/// the most.
struct PlanMemory {
  uint64_t scratch = 0;
  uint64_t staging = 0;  ///< which plans that are loaded `in_turn` share
};
/// What a plan would take. nullopt: a rank's scratch is too large to be laid out.
[[nodiscard]] std::optional<PlanMemory> memory_of(const Program& plan, const LoadOptions& options);
/// True if calls of the plan may be pieces of longer ones, one piece after the other.
bool takes_pieces(const Program& plan, const LoadOptions& options);

/// A call that is ready to be launched: the plan, fitted to a message size and to buffers. It may
/// be destroyed as soon as it is launched, or captured in a graph: what launches still read is kept
/// for them. Thread safety: a value that copies share, and only launches change; any thread may
/// destroy it.
class BoundCall {
 public:
  struct State;
  BoundCall() = default;
  explicit BoundCall(std::shared_ptr<State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }
  /// True if a kernel that was compiled for the plan runs the call on this rank, not the
  /// interpreter; as of its last launch, for kernels that come later. REQUIRES: not empty.
  bool has_compiled_kernel() const;
  const State& state() const { return *state_; }

 private:
  friend class Executable;
  std::shared_ptr<State> state_;
};

/// A plan that all ranks of a communicator have loaded.
///
/// Its calls are numbered on each rank in the order of their launches; all ranks must launch calls
/// of the same message size, type and reduction in the same order, one after the other (on one
/// stream, or on streams that wait for each other). It may be destroyed while its calls run. Its
/// memory is freed at once, where all streams of calls have been waited for (synchronize()); else
/// at the communicator's next load() or register_buffer(), which wait for them, or with it. It must
/// outlive graphs that have captured its calls. Thread safety: its functions are the
/// communicator's, for one thread at a time. After an error, destroy the Executable before freeing
/// its calls' buffers: its proxy may still read them. Peers may still use memory of this rank that
/// they have mapped: it is freed when the last of them has unmapped it.
class Executable {
 public:
  struct State;
  explicit Executable(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Fits the plan to a call of so many bytes. Its root, shift and order are the plan's.
  /// Collective if binds_together(), else local.
  [[nodiscard]] BoundCall bind(const CollectiveCall& call, Diagnostics& diagnostics);
  /// True if bind() is collective: zero copy, and the plan's ops address other ranks' buffers. Of
  /// `registered` calls only those are for which bind_waits().
  bool binds_together() const;
  /// True if bind() would wait for the other ranks, for the same calls on all of them: of
  /// `registered` ones the first whose buffers the plan joins at a switch. Local.
  bool bind_waits(const CollectiveCall& call);
  /// Starts a call on a stream of the device. Local; does not wait; may be captured in a graph.
  [[nodiscard]] bool launch(const BoundCall& binding, StreamHandle stream,
                            Diagnostics& diagnostics);

  /// From now on each launch writes when its blocks began their steps (executor/stamps.h) to memory
  /// of the device, `words` words a block; nullptr: none do. Local. Compiled kernels write
  /// nothing. REQUIRES: words >= kStampHead; the memory lives until such launches have ended.
  void stamp_launches(uint64_t* rows, uint32_t words);

  const Program& plan() const;

 private:
  std::shared_ptr<State> state_;
};

/// Memory of a rank, as another process sees it.
struct RankMemory {
  uint8_t* address = nullptr;  ///< nullptr: no access leads there, or there are no bytes
  uint64_t bytes = 0;
};

/// A buffer that peers have mapped: bind() takes pointers into it without a copy. Destroy it on all
/// ranks, once no call that uses it will be launched any more, and free its memory only when all
/// ranks have done so: a peer may still be in a call that uses it (freeing memory of cudaMalloc
/// takes it from under that call). It may be destroyed while calls run: what they use stays mapped
/// until they have ended, as with an Executable's memory. Other memory that is allocated at the
/// same address later is not what peers have mapped, and bind() refuses it (stale-registration). On
/// the host device the registration keeps the memory, and so its address. Thread safety: the
/// communicator's.
class RegisteredBuffer {
 public:
  struct State;
  explicit RegisteredBuffer(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// The buffer of a rank, as this process sees it, while the registration lives. REQUIRES: there
  /// is such a rank.
  RankMemory of_rank(uint32_t rank) const;

 private:
  std::shared_ptr<State> state_;
};

/// One rank of a group. Its functions may be called by one thread at a time, abort() and
/// has_failed() by any.
class Communicator {
 public:
  /// Collective. nullptr: reported. A rank whose device cannot be opened calls it too, with nullptr
  /// and the reason in `diagnostics`, so that all ranks learn of it. Errors: no-bootstrap,
  /// no-device, no-thread, bad-variable, out-of-memory …
  [[nodiscard]] static std::unique_ptr<Communicator> create(std::unique_ptr<Bootstrap> bootstrap,
                                                            std::shared_ptr<Device> device,
                                                            const CommunicatorOptions& options,
                                                            Diagnostics& diagnostics);
  /// Waits for what destroyed executables have left running; all of it ends.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  uint32_t rank() const;
  uint32_t size() const;
  /// The worst link between any two ranks' devices, the same on all: LibraryCall::links.
  LinkKind worst_link() const;
  /// By rank, the first rank of its node, the same on all: ranks of a node reach each other's
  /// memory without lanes.
  const std::vector<uint32_t>& nodes() const;
  /// All ranks are processes of one machine and one network namespace: they can meet at a socket
  /// that has no port.
  bool in_one_place() const;
  Device& device() const;
  Bootstrap& bootstrap() const;
  /// What every function of the communicator, and of what is made from it, enters
  /// (runtime/support/observe/one_thread.h): for layers above that must not be entered by two
  /// threads.
  std::shared_ptr<OneThread> one_thread() const;

  /// Collective: prepares a plan for calls. All ranks must give the same plan and options. Waits
  /// for calls that run, if executables or buffers have been destroyed since they began. A rank
  /// that has none gives nullptr, with its errors in `diagnostics`: all ranks learn of them.
  /// Errors: no-plan, plan-differs, wrong-size (the plan is for another number of ranks),
  /// not-proved (after the prover's findings), what verify_structure() finds, out-of-memory …
  [[nodiscard]] std::unique_ptr<Executable> load(std::shared_ptr<const Program> plan,
                                                 const LoadOptions& options,
                                                 Diagnostics& diagnostics);
  /// The same of a rank that has no plan, for the reason in `diagnostics`. True: no rank has one.
  [[nodiscard]] bool no_rank_loads(const LoadOptions& options, Diagnostics& diagnostics);

  /// Collective: lets peers map `bytes` bytes of this rank's memory at `address`; sizes may differ
  /// between ranks, and be 0. May wait as load() does.
  [[nodiscard]] std::unique_ptr<RegisteredBuffer> register_buffer(void* address, uint64_t bytes,
                                                                  Diagnostics& diagnostics);

  /// Waits for all work on a stream, and for what its calls have handed to proxies, then does
  /// check(). After that nothing on this rank reads or writes the calls' buffers any more.
  [[nodiscard]] bool synchronize(StreamHandle stream, Diagnostics& diagnostics);
  /// Reports whether anything has gone wrong so far: hang, peer-failed, aborted, proxy. For a hang,
  /// the first line is the same on all ranks and names the rank that did not answer; notes show
  /// which ranks wait for which, and for every thread block that gave up its op, where that is in
  /// the program, and what it waited for. Waits some seconds at most for the reports of the other
  /// ranks.
  [[nodiscard]] bool check(Diagnostics& diagnostics);
  /// The same as far as it is known by now, without waiting for other ranks: true if it has failed.
  /// From any thread.
  bool has_failed(Diagnostics& diagnostics) const;
  /// Ends all calls of all ranks: nothing waits any more, and every rank's check() says `why`.
  void abort(const std::string& why);
  /// The same for a rank that cannot go on; the reason is the last of these errors.
  void abort(const Diagnostics& why);

 private:
  struct State;
  explicit Communicator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
