#include "runtime/doors/nccl/calls/window_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/diagnostics/first_message.h"
#include "runtime/api/bootstrap.h"
#include "runtime/doors/nccl/backends/report.h"

namespace mscclc::nccl {
namespace {

/// How many times CollectiveCall::count elements a buffer has. nullopt: not all ranks have one.
std::optional<uint64_t> parts_of(const SideInfo& side, uint64_t ranks) {
  if (side.only_at_root) return std::nullopt;
  if (side.form == SideForm::whole) return 1;
  return side.form == SideForm::rows ? std::optional(ranks) : std::nullopt;
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
  const std::string why = first_message(diagnostics, "a rank has no window");
  inform(Subsystem::reg, comm.ordinal,
         fmt::format("window of {} bytes at {}: {}", call.bytes, call.buffer,
                     memory ? "plans reach it" : "plans do not reach it: " + why));
}

}  // namespace

bool lies_in_windows(const Comm& comm, const NcclCall& call) {
  if (comm.windows.empty() || moves_nothing(call)) return false;
  const auto sent = parts_of(info(call.kind).input, comm.ranks);
  const auto received = parts_of(info(call.kind).output, comm.ranks);
  const uint64_t width = info(call.dtype).bytes;
  const uint64_t most = UINT64_MAX / width / comm.ranks;
  return sent && received && call.count <= most &&
         comm.windows.hold(call.input, *sent * call.count * width) &&
         comm.windows.hold(call.output, *received * call.count * width);
}

ncclResult_t share_windows(CallsOfComm& one) {
  Comm& comm = *one.comm;
  const bool made = one.result == ncclSuccess;
  const std::lock_guard lock(comm.mutex);
  if (comm.plans == nullptr || comm.ranks == 1) return one.result;
  for (const Prepared& prepared : one.calls) {
    if (prepared.call->window) share(comm, *prepared.call->window, made);
  }
  return one.result;
}

}  // namespace mscclc::nccl
