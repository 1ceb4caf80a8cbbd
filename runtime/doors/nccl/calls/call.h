// One call on a communicator, as its caller made it, and how calls are made once their group ends:
// by plans, or by the real NCCL.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/comm/comm.h"

namespace mscclc::nccl {

enum class CallKind : uint8_t {
  allreduce,
  broadcast,
  reduce,
  allgather,
  reducescatter,
  alltoall,
  gather,
  scatter,
  send,
  recv,
  other  ///< that only the real NCCL knows: Call::make
};

/// A symmetric window that a call registers.
struct WindowCall {
  void* buffer = nullptr;
  size_t bytes = 0;
  ncclWindow_t* window = nullptr;  ///< the caller's: set when the call is made
};

struct Call {
  CommPointer comm;
  CallKind kind = CallKind::other;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  ncclDataType_t type = 0;
  ncclRedOp_t op = 0;
  int root = 0;  ///< or the peer
  cudaStream_t stream = nullptr;
  /// What `op` means if it was made at run time: copied, so that the caller may destroy it.
  std::shared_ptr<const Reduction> reduction = nullptr;
  /// A copy of the caller's; nullptr: there is none.
  std::shared_ptr<const std::vector<uint8_t>> config = nullptr;
  /// Of kind other.
  std::function<ncclResult_t(const RealNccl&, ncclComm_t)> make = {};
  std::optional<WindowCall> window = {};  ///< of kind other
};

/// "allreduce".
const char* name(CallKind kind);

/// Makes the calls of a group: first all are prepared, then all launched, each communicator's in
/// the order given. A call that cannot be prepared leaves nothing launched.
ncclResult_t make_calls(std::vector<Call>& calls);

}  // namespace mscclc::nccl
