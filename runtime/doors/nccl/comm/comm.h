// A communicator as NCCL's callers hold it: ours, which runs plans, and the real NCCL's beside it
// for what no plan serves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/doors/nccl/abi/abi.h"
#include "runtime/doors/nccl/comm/config.h"
#include "runtime/doors/nccl/comm/messages.h"
#include "runtime/doors/nccl/comm/plan_calls.h"
#include "runtime/doors/nccl/comm/profiler.h"
#include "runtime/doors/nccl/comm/windows.h"

namespace mscclc::nccl {

/// What becomes of a communicator, in this order; `failed` instead of `ready`.
enum class Stage : uint8_t { making, ready, failed, finalized, revoked, aborted, destroyed };

/// A reduction that was made at run time. Calls hold it, so it may be destroyed at any time.
struct Reduction {
  ncclRedOp_t handle = 0;
  ncclDataType_t type = 0;
  ncclScalarResidence_t residence = kNcclScalarDevice;
  void* address = nullptr;  ///< of a scalar on the device
  uint64_t value = 0;       ///< bytes of a scalar of the host
};

/// Memory that a caller has registered.
struct Registration {
  void* buffer = nullptr;
  size_t bytes = 0;
  void* real = nullptr;  ///< the real NCCL's handle, once it has a communicator
};

/// Facts that all ranks have exchanged, the same on all.
struct JobFacts {
  bool has_real = false;    ///< every rank has an NCCL to fall back to, of one version
  bool wants_real = false;  ///< some rank's variables leave all calls to NCCL
  bool one_machine = false;
  int nodes = 1;  ///< machines
  /// The least of the ranks' bounds of thread blocks (maxCTAs, NCCL_MAX_CTAS); 0: none has one.
  uint32_t most_blocks = 0;
  bool no_blocks =
      false;  ///< some rank's CTA policy is zero: thread blocks are for the application
  bool orders_replays = true;    ///< some rank may launch graphs beside other calls
  uint32_t multiprocessors = 0;  ///< the fewest of any rank's GPU; 0: there are no GPUs
  bool lazy = false;  ///< some rank wants the real communicator only when a call needs it
  std::array<uint8_t, 16> secret{};  ///< that only these ranks know
};

/// Thread safety: what needs `mutex` says so; the rest never changes once the stage is past
/// `making`.
struct Comm {
  ncclComm_t handle = nullptr;
  uint32_t forks = 0;  ///< forks(), as it was made: in children of its process it is of no use
  uint32_t rank = 0, ranks = 0;
  int ordinal = 0;  ///< the GPU, as CUDA counts; 0 on the host device
  bool on_host = false;
  bool requires_plans = false;             ///< MSCCLC_REQUIRE_PLAN
  bool compares_calls = false;             ///< MSCCLC_CHECK_CALLS
  SumOrder order_of_sums = kDefaultOrder;  ///< MSCCLC_ORDER
  bool blocking = true;                    ///< callers wait for what takes long
  Config config;
  std::weak_ptr<const Comm> parent;  ///< that it is split, shrunk or grown from
  JobFacts facts;
  std::string why_no_real;  ///< why calls cannot fall back
  std::string why_real;     ///< facts.wants_real: whose variable says so; else empty

  /// Of calls that are asked for from now on; nullopt: order_of_sums.
  std::atomic<std::optional<SumOrder>> asked_order{};
  std::atomic<Stage> stage{Stage::making};
  std::atomic<ncclResult_t> async_error{ncclSuccess};
  std::atomic<ncclComm_t> real{nullptr};  ///< the real NCCL's; nullptr: not made yet
  /// Held while the real NCCL is asked for errors, and where `real` is made known or taken; over no
  /// call that may wait.
  std::mutex asking;
  uint32_t calling = 0;          ///< threads between enter_real() and leave_real(); under `asking`
  ncclComm_t leaving = nullptr;  ///< aborted: the last of those threads frees it; under `asking`

  /// Of what follows, and of all that this rank does in order with the others.
  std::mutex mutex;
  std::shared_ptr<Device> device;
  std::vector<std::unique_ptr<Memory>> scaled;  ///< inputs of averages (scaled_call.h)
  std::shared_ptr<Communicator> communicator;   ///< set once; abort() needs no lock
  std::unique_ptr<PlanCalls> plans;             ///< nullptr: no call is served by plans
  std::unique_ptr<Messages> messages;           ///< set once; nullptr: plans serve none
  std::unique_ptr<Profiler> profiler;           ///< nullptr: there is none
  StreamHandle null_stream = nullptr;           ///< on the host device: what stands for stream 0
  /// Of all calls that plans or the real NCCL make.
  std::shared_ptr<StreamChain> order;
  Windows windows;  ///< that plans reach
  /// How often which ranks have met again, which gives each meeting its own name. Counted by these,
  /// as ranks that were left out of a meeting know nothing of it.
  std::map<std::vector<uint32_t>, uint32_t> meetings;

  std::mutex tables;  ///< of what follows
  std::map<ncclRedOp_t, std::shared_ptr<const Reduction>> reductions;
  std::map<void*, std::unique_ptr<Registration>> registrations;
  /// What was asked of it, and callers do not wait for: children that are made, a group of calls.
  /// Changed with `tables` held, as is `async_error` where something begins or has been made.
  std::atomic<uint32_t> unwaited{0};
  ncclResult_t unwaited_error = ncclSuccess;  ///< the last one's of them
  std::optional<ncclUniqueId> growth_id;  ///< of ncclCommGetUniqueId(), for the next ncclCommGrow()

  ~Comm();
};

using CommPointer = std::shared_ptr<Comm>;

/// Gives a new communicator the handle that callers get. Handles are never used twice, and point at
/// nothing.
ncclComm_t add_comm(const CommPointer& comm);
/// nullptr: it is not ours, or is gone.
CommPointer find_comm(ncclComm_t handle);
/// Takes it from its callers. nullptr: as find_comm().
CommPointer remove_comm(ncclComm_t handle);
/// Gives it back to its callers: what remove_comm() was for is not done.
void put_back_comm(const CommPointer& comm);
/// True of handles that we gave out, also of communicators that are gone.
bool is_our_handle(ncclComm_t handle);

/// The communicator of a call, in NCCL's order of checks: there is such a one; it is not revoked;
/// it is ready. nullptr: `result` says what to answer.
CommPointer usable_comm(ncclComm_t handle, const char* function, ncclResult_t& result);
/// ncclSuccess: it is ready; else what to answer to a call of `function`.
[[nodiscard]] ncclResult_t check_stage(const Comm& comm, const char* function);

/// Something begins that was asked of it, and callers do not wait: until all such have ended, it is
/// ncclInProgress and refuses calls; then it has their error, but not of what a revoke has ended.
/// Begins at the stage that it returns.
[[nodiscard]] Stage begin_unwaited(Comm& comm);
void end_unwaited(Comm& comm, Stage begun_at, ncclResult_t result);
/// Refuses a call until they have.
[[nodiscard]] ncclResult_t check_unwaited(const Comm& comm, const char* function);

/// Waits until the real NCCL has done what it says is in progress, or its communicator is aborted,
/// which is an error.
ncclResult_t settle(Comm& comm, ncclComm_t real, ncclResult_t result);

/// Begins calls of the real NCCL that no caller waits for: its communicator is not freed before
/// leave_real(), unless NCCL is older than 2.28.7, which ends such calls in no other way. Refused
/// once it is aborted or revoked.
[[nodiscard]] ncclResult_t enter_real(Comm& comm);
void leave_real(Comm& comm);

/// Ends the calls and messages of it that still run, by plans and by the real NCCL, whose
/// communicator goes if it cannot be revoked. Needs no lock.
ncclResult_t end_calls(Comm& comm, const char* why);

/// Collective: makes the real NCCL's communicator if there is none yet. REQUIRES: `mutex` is held,
/// and the device is current.
[[nodiscard]] ncclResult_t make_real(Comm& comm);

/// Lets go of a communicator's real one and of plans, in an order that both survive.
ncclResult_t close_comm(Comm& comm, bool abort);

}  // namespace mscclc::nccl
