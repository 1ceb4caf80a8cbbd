#include "runtime/doors/nccl/calls/comm_calls.h"

#include <fmt/format.h>

#include "ir/diagnostics/first_message.h"
#include "runtime/api/host_device.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc::nccl {
namespace {

/// NCCL makes communicators on the device that is current, and the caller's stays what it is.
ncclResult_t make_real_on_its_device(Comm& comm) {
  ncclResult_t result = ncclSuccess;
  Diagnostics diagnostics;
  std::thread thread = quiet_thread(
      "mscclc-nccl",
      [&] {
        result = comm.device->bind_thread(diagnostics) ? make_real(comm) : ncclUnhandledCudaError;
      },
      [&] { result = ncclSystemError; });
  const bool started = has_started(thread, "NCCL's communicator", diagnostics);
  if (started) thread.join();
  return diagnostics.has_errors() ? fail(ncclSystemError, "cannot fall back", diagnostics) : result;
}

bool may_mix(const Comm& comm) { return comm.plans != nullptr || comm.ranks == 1; }

}  // namespace

ncclResult_t check_stream(const Comm& comm, const char* function, cudaStream_t stream) {
  if (!comm.on_host || stream == nullptr || is_host_stream(stream)) return ncclSuccess;
  return fail(ncclInvalidArgument,
              fmt::format("{}: {} is not a stream of the host device (MSCCLC_DEVICE)", function,
                          static_cast<const void*>(stream)));
}

StreamHandle stream_of(const Comm& comm, const NcclCall& call) {
  return call.stream == nullptr && comm.on_host ? comm.null_stream : call.stream;
}

void say_server(const Comm& comm, const NcclCall& call, const std::string& server) {
  if (!informs(Subsystem::coll)) return;
  const ncclRedOp_t op = call.reduction != nullptr ? call.reduction->handle : nccl_op_of(call.op);
  inform(Subsystem::coll, comm.ordinal,
         fmt::format("{}: count {} datatype {} op {} root {} comm {} nranks {} stream {}: {}",
                     name(call), call.count, nccl_type_of(call.dtype), op, call.root,
                     static_cast<const void*>(comm.handle), comm.ranks,
                     static_cast<const void*>(call.stream), server));
}

std::optional<ncclResult_t> prepare_plan(const Comm& comm, const NcclCall& call, ServedCall& plan,
                                         std::string& server) {
  Diagnostics diagnostics;
  if (plan.prepare(diagnostics)) return ncclSuccess;
  if (!comm.facts.has_real || !plan.leave_to_real()) return fail(name(call), diagnostics);
  server = "no rank has its plan: " + first_message(diagnostics);
  return std::nullopt;
}

ncclResult_t prepare_real(Comm& comm, const NcclCall& call, const std::string& why) {
  // Windows and the like are NCCL's, whatever plans there are.
  if (comm.requires_plans && (is_collective(call) || is_message(call))) {
    return fail(ncclInvalidUsage,
                fmt::format("{}: {}, and MSCCLC_REQUIRE_PLAN is set", name(call), why));
  }
  if (comm.real == nullptr && is_message(call) && comm.facts.has_real) {
    return fail(ncclInvalidUsage,
                fmt::format("{}: NCCL's communicator is not made yet, and not all ranks may come "
                            "to this call: leave MSCCLC_NCCL_COMM at init",
                            name(call)));
  }
  if (comm.facts.has_real) {
    const ncclResult_t there = check_real(*real_nccl(), call);
    if (there != ncclSuccess) return there;
  }
  say_server(comm, call, fmt::format("NCCL, as {}", why));
  return comm.real == nullptr ? make_real_on_its_device(comm) : ncclSuccess;
}

ncclResult_t begin_real_call(Comm& comm, StreamHandle stream) {
  if (!may_mix(comm)) return ncclSuccess;
  Diagnostics diagnostics;
  // To the real NCCL, streams of the host mean nothing.
  if (comm.order->follow(stream, diagnostics) &&
      (!comm.on_host || comm.device->synchronize(stream, diagnostics))) {
    return ncclSuccess;
  }
  return fail(ncclUnhandledCudaError, "cannot keep the order of streams", diagnostics);
}

ncclResult_t end_real_call(Comm& comm, StreamHandle stream) {
  Diagnostics diagnostics;
  if (!may_mix(comm) || comm.order->put_last(stream, diagnostics)) return ncclSuccess;
  return fail(ncclUnhandledCudaError, "cannot keep the order of streams", diagnostics);
}

}  // namespace mscclc::nccl
