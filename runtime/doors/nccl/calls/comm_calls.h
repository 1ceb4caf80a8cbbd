// The calls of one communicator in one group, in order, and what those by plans and those by the
// real NCCL share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/doors/nccl/calls/call.h"
#include "runtime/doors/nccl/comm/comm.h"

namespace mscclc::nccl {

struct Prepared {
  NcclCall* call = nullptr;
  std::unique_ptr<ServedCall> plan;  ///< nullptr: the real NCCL makes it
  std::string server = {};           ///< what serves it and why, for the log; "": not asked for
  std::string plan_name = {};        ///< set where there is a profiler
  /// A message's plan before it is prepared; nullptr: not asked for yet, or there is none.
  std::unique_ptr<ServedCall> found = {};
  /// Of a message by a plan, which runs on its stream; nullptr: on the caller's.
  PeerRoute* route = nullptr;
};

struct CallsOfComm {
  CommPointer comm;
  std::vector<Prepared> calls;
  size_t next = 0;                     ///< the first that is not launched
  StreamHandle real_stream = nullptr;  ///< of the last call that the real NCCL has been given
  bool gave_real = false;              ///< it has been given one in this round
  bool in_real = false;                ///< leave_real() is to come
  std::vector<const Prepared*>
      under_way;  ///< messages that no stream of the caller's waits for yet
  std::unique_ptr<GroupEvents> events = {};  ///< since the first call of a plan is launched
  ncclResult_t result = ncclSuccess;
};

/// What stays on a rank.
class Copy final : public ServedCall {
 public:
  /// The communicator must outlive it.
  Copy(Comm& comm, StreamHandle stream, const void* from, void* to, uint64_t bytes)
      : comm_(comm), stream_(stream), from_(from), to_(to), bytes_(bytes) {}
  std::string plan() const override { return "copy"; }
  bool launch(Diagnostics& diagnostics) override {
    return comm_.order->follow(stream_, diagnostics) &&
           (from_ == to_ || comm_.device->copy(to_, from_, bytes_, stream_, diagnostics)) &&
           comm_.order->put_last(stream_, diagnostics);
  }

 private:
  Comm& comm_;
  const StreamHandle stream_;
  const void* const from_;
  void* const to_;
  const uint64_t bytes_;
};

/// Refuses what is known to be no stream: on the host device all that no host device has made,
/// except stream 0. Of a GPU's streams only its driver knows.
ncclResult_t check_stream(const Comm& comm, const char* function, cudaStream_t stream);

/// The caller's; on the host device what stands for stream 0.
StreamHandle stream_of(const Comm& comm, const NcclCall& call);

/// A line of the debug log.
void say_server(const Comm& comm, const NcclCall& call, const std::string& server);

/// Makes ready what a call has a plan for. nullopt: no rank has it: the call is the real NCCL's,
/// and `server` says why.
[[nodiscard]] std::optional<ncclResult_t> prepare_plan(const Comm& comm, const NcclCall& call,
                                                       ServedCall& plan, std::string& server);

/// Makes the real NCCL ready for a call that no plan serves, as `why` says. Collective if it has no
/// communicator yet.
[[nodiscard]] ncclResult_t prepare_real(Comm& comm, const NcclCall& call, const std::string& why);

/// Puts a call of the real NCCL after those that plans serve; what it serves itself it keeps in
/// order. REQUIRES, as end_real_call(): the communicator's mutex is held.
[[nodiscard]] ncclResult_t begin_real_call(Comm& comm, StreamHandle stream);
[[nodiscard]] ncclResult_t end_real_call(Comm& comm, StreamHandle stream);

}  // namespace mscclc::nccl
