// What NCCL's interface needs of the layer that runs plans: which calls it serves, and how one gets
// onto a stream. Tests put others in its place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/collectives.h"
#include "runtime/api/stream.h"

namespace mscclc::nccl {

/// A call that is served without the real NCCL.
class ServedCall {
 public:
  virtual ~ServedCall() = default;
  /// The plan's name; "copy" if it needs none.
  virtual std::string plan() const = 0;
  /// True if prepare() would wait for other ranks.
  virtual bool waits_for_ranks() { return false; }
  /// Makes it ready to be launched. False: reported.
  [[nodiscard]] virtual bool prepare(Diagnostics&) { return true; }
  /// True where prepare() has failed because no rank has a plan: the caller then leaves the call,
  /// and all like it, to the real NCCL.
  [[nodiscard]] virtual bool leave_to_real() { return false; }
  /// Puts it on the stream that it was found for, after the communicator's earlier calls; does not
  /// wait. REQUIRES: prepare().
  [[nodiscard]] virtual bool launch(Diagnostics& diagnostics) = 0;
};

/// Memory that all ranks have registered together.
struct SharedMemory {
  uint64_t number = 0;  ///< which registration
  uint64_t bytes = 0;   ///< the least of any rank
};

/// Thread safety: the communicator's, one thread at a time.
class PlanCalls {
 public:
  virtual ~PlanCalls() = default;
  /// Finds the plan for a call, once for all that is to come. nullptr: none serves it; only facts
  /// of all ranks decide. `what`, if any: gets one line, the plan and why it is the choice, or why
  /// there is none. The call and its memory are not looked at. Local.
  [[nodiscard]] virtual std::unique_ptr<ServedCall> serve(const CollectiveCall& call,
                                                          StreamHandle stream, bool capturing,
                                                          std::string* what) = 0;
  /// True if ServedCall::launch() waits for other ranks after all, to compare calls
  /// (MSCCLC_CHECK_CALLS).
  virtual bool launches_wait() const = 0;
  /// Collective: lets plans reach memory of all ranks, for calls that are `registered`. nullopt:
  /// some rank cannot; reported, or there are no plans that could.
  [[nodiscard]] virtual std::optional<SharedMemory> register_memory(void* address, uint64_t bytes,
                                                                    Diagnostics& diagnostics) = 0;
  /// Local; before the memory is freed.
  virtual void deregister_memory(const SharedMemory& memory) = 0;
};

}  // namespace mscclc::nccl
