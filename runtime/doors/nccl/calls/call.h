// One call on a communicator, as its caller made it, and how calls are made once their group ends:
// by plans, or by the real NCCL.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/call.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/comm/comm.h"

namespace mscclc::nccl {

/// What a rank does of a message, which two ranks make.
enum class MessageSide : uint8_t { none, sends, receives };

/// A symmetric window that a call registers.
struct WindowCall {
  void* buffer = nullptr;
  size_t bytes = 0;
  ncclWindow_t* window = nullptr;  ///< the caller's: set when the call is made
};

struct KeptConfig;  // coll_config.cc

/// A call of a collective, or a message: its `root` is the peer, and its `kind` none. With neither
/// it is one that only the real NCCL knows: `make`.
struct NcclCall : CollectiveCall {
  CommPointer comm;
  cudaStream_t stream = nullptr;
  MessageSide side = MessageSide::none;
  /// What reduces if it was made at run time, in the place of `op`: copied, so that the caller may
  /// destroy it.
  std::shared_ptr<const Reduction> reduction = nullptr;
  /// A copy of the caller's; nullptr: there is none.
  std::shared_ptr<const KeptConfig> config = nullptr;
  /// Of its configuration: recorded when the call's kernel is launched; nullptr: there is none.
  cudaEvent_t launch_completion = nullptr;
  std::optional<int> cta_policy = {};  ///< of its configuration, in place of the communicator's
  uint64_t profiler_tag = 0;           ///< of its configuration; 0: there is none
  const char* asks_for_order = "MSCCLC_ORDER";  ///< what says which order its sums keep to
  std::function<ncclResult_t(const RealNccl&, ncclComm_t)> make = {};
  std::optional<WindowCall> window = {};  ///< with `make`
};

inline bool is_collective(const NcclCall& call) { return call.kind != CollectiveKind::none; }
inline bool is_message(const NcclCall& call) { return call.side != MessageSide::none; }
inline bool sends(const NcclCall& call) { return call.side == MessageSide::sends; }
/// A collective without elements, which no rank waits for: asked for only to be compared.
inline bool moves_nothing(const NcclCall& call) { return is_collective(call) && call.count == 0; }
/// As NCCL has it.
inline int root_of(const NcclCall& call) { return static_cast<int>(call.root); }
/// "AllReduce".
const char* name(const NcclCall& call);

/// Makes the calls of a group: first all are prepared, then all launched, each communicator's in
/// the order given. A call that cannot be prepared leaves nothing launched. ncclInProgress: their
/// communicators are not blocking, and making them would wait.
ncclResult_t make_calls(std::vector<NcclCall> calls);

/// Work on communicators of these calls, and others, that no caller waits for.
struct UnwaitedWork {
  std::function<void()> begin;  ///< on the caller's thread
  std::function<ncclResult_t()> run;
};
/// Makes the calls once such work has ended well: ncclInProgress. Else neither has run.
ncclResult_t make_calls_after(const UnwaitedWork& work, std::vector<NcclCall> calls);

}  // namespace mscclc::nccl
