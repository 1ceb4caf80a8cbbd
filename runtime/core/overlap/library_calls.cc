#include "runtime/core/overlap/library_calls.h"

#include <algorithm>
#include <utility>

#include "runtime/core/overlap/agree.h"

namespace mscclc::overlap {

bool LibraryCalls::prepare(CollectiveCall call, const Offsets& at, Diagnostics& diagnostics) {
  Collectives& collectives = *job_.owner.collectives;
  memory_ = job_.device.allocate(at.bytes, "a GEMM's first call", diagnostics);
  stream_ = job_.device.create_stream(diagnostics);
  if (memory_ == nullptr || stream_ == nullptr) return false;
  call.input = memory_->data() + at.input;
  call.output = memory_->data() + at.output;
  for (const bool captured : {false, true}) {
    plans_[captured] = collectives.choose_once(call, captured, nullptr, diagnostics);
    if (diagnostics.has_errors()) return false;
    if (plans_[captured].picked != nullptr || !collectives.needs_plan(call)) continue;
    diagnostics.error("no-plan", {}, "no plan of the library serves the collective of the GEMM");
    return false;
  }
  call_ = call;
  return true;
}

bool LibraryCalls::load(Diagnostics& diagnostics) {
  Diagnostics own;
  (void)std::ranges::all_of(plans_, [&](const PlanChoice& plan) {
    return static_cast<bool>(job_.owner.collectives->prepare(call_, plan, stream_, own));
  });
  release();
  return agree(job_.owner.communicator->bootstrap(), {}, own, diagnostics);
}

/// Only where the plans differ does it matter whether the stream is captured.
bool LibraryCalls::call(const CollectiveCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  const auto& [eager, captured] = plans_;
  const bool alike = eager.picked == captured.picked && eager.count == captured.count;
  const PlanChoice& plan = alike || !job_.device.is_capturing(stream) ? eager : captured;
  Collectives& collectives = *job_.owner.collectives;
  const ReadyCall ready = collectives.prepare(call, plan, stream, diagnostics);
  return ready && collectives.launch(ready, diagnostics);
}

void LibraryCalls::release() {
  if (stream_ != nullptr) job_.device.destroy_stream(std::exchange(stream_, nullptr));
  memory_ = nullptr;
}

}  // namespace mscclc::overlap
