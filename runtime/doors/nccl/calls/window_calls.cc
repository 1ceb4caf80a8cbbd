#include "runtime/doors/nccl/calls/window_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/api/bootstrap.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"

namespace mscclc::nccl {
namespace {

/// How many times Call::count elements the buffers have.
struct Extents {
  uint64_t send, receive;
};

/// nullopt: not all ranks have both buffers.
std::optional<Extents> extents_of(CallKind kind, uint64_t ranks) {
  switch (kind) {
    case CallKind::allreduce:
      return Extents{1, 1};
    case CallKind::allgather:
      return Extents{1, ranks};
    case CallKind::reducescatter:
      return Extents{ranks, 1};
    case CallKind::alltoall:
      return Extents{ranks, ranks};
    default:
      return std::nullopt;
  }
}

/// All ranks learn whether all have the window.
bool all_have_it(Comm& comm, bool here, Diagnostics& diagnostics) {
  const std::vector<uint8_t> own{static_cast<uint8_t>(here ? 1 : 0)};
  std::vector<std::vector<uint8_t>> all;
  return comm.communicator->bootstrap().all_gather(own, "a window", all, diagnostics) &&
         std::all_of(all.begin(), all.end(),
                     [&](const auto& one) { return one == std::vector<uint8_t>{1}; });
}

void share(Comm& comm, const WindowCall& call, bool made) {
  Diagnostics diagnostics;
  std::optional<SharedMemory> memory;
  if (all_have_it(comm, made && *call.window != nullptr, diagnostics)) {
    memory = comm.plans->register_memory(call.buffer, call.bytes, diagnostics);
  }
  if (memory) comm.windows.add(*call.window, call.buffer, *memory);
  if (!informs(Subsystem::reg)) return;
  const std::string why =
      diagnostics.has_errors() ? diagnostics.all().front().message : "a rank has no window";
  inform(Subsystem::reg, comm.ordinal,
         fmt::format("window of {} bytes at {}: {}", call.bytes, call.buffer,
                     memory ? "plans reach it" : "plans do not reach it: " + why));
}

}  // namespace

bool lies_in_windows(const Comm& comm, const Call& call) {
  if (comm.windows.empty()) return false;
  const auto extents = extents_of(call.kind, comm.ranks);
  const uint64_t width = info(*dtype_of(call.type)).bytes;
  const uint64_t most = UINT64_MAX / width / comm.ranks;
  return extents && call.count <= most &&
         comm.windows.hold(call.send, extents->send * call.count * width) &&
         comm.windows.hold(call.receive, extents->receive * call.count * width);
}

void share_windows(Lane& lane) {
  Comm& comm = *lane.comm;
  const bool made = lane.result == ncclSuccess;
  const std::lock_guard lock(comm.mutex);
  if (comm.plans == nullptr || comm.ranks == 1) return;
  for (const Prepared& prepared : lane.calls) {
    if (prepared.call->window) share(comm, *prepared.call->window, made);
  }
}

}  // namespace mscclc::nccl
