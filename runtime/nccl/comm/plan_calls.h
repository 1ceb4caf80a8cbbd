// What NCCL's interface needs of the layer that runs plans: which calls it serves, and how one gets
// onto a stream. Tests put others in its place.
#pragma once

#include <memory>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/collectives.h"
#include "runtime/api/stream.h"

namespace mscclc::nccl {

/// A call that waits for no rank any more.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  /// Puts it on the stream that it was prepared for; does not wait.
  [[nodiscard]] virtual bool launch(StreamHandle stream, Diagnostics& diagnostics) = 0;
};

/// Thread safety: the communicator's, one thread at a time.
class PlanCalls {
 public:
  virtual ~PlanCalls() = default;
  /// True if a plan serves the call, or it needs none: decided by facts of all ranks alone. `what`,
  /// if any: gets one line, the plan and why it is the choice, or why there is none.
  virtual bool serves(const CollectiveCall& call, bool capturing, std::string* what) = 0;
  /// The name of the plan that serves a call; "copy" if it needs none.
  virtual std::string plan_of(const CollectiveCall& /*call*/, bool /*capturing*/) { return ""; }
  /// True if prepare() would wait for other ranks.
  virtual bool waits_for_ranks(const CollectiveCall& call, StreamHandle stream) = 0;
  /// True if PreparedCall::launch() waits for other ranks after all, to compare calls
  /// (MSCCLC_CHECK_CALLS).
  virtual bool launches_wait() const = 0;
  /// Makes a call ready that is served. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<PreparedCall> prepare(const CollectiveCall& call,
                                                              StreamHandle stream,
                                                              Diagnostics& diagnostics) = 0;
};

}  // namespace mscclc::nccl
