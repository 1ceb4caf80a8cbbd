#include "runtime/core/overlap/library_calls.h"

namespace mscclc::overlap {

bool LibraryCalls::prepare(const CollectiveCall& call, bool captured, StreamHandle stream,
                           Diagnostics& diagnostics) {
  Collectives& collectives = *job_.owner.collectives;
  std::vector<PassedOver> passed_over;
  const PlanChoice plan = collectives.choose_once(call, captured, &passed_over, diagnostics);
  if (diagnostics.has_errors()) return false;
  if (plan.picked == nullptr && collectives.needs_plan(call)) {
    diagnostics.error("no-plan", {}, "no plan of the library serves the collective of the GEMM");
    return false;
  }
  return static_cast<bool>(collectives.prepare(call, plan, stream, diagnostics));
}

bool LibraryCalls::load(CollectiveCall call, uint64_t input_offset, uint64_t output_offset,
                        Diagnostics& diagnostics) {
  const uint64_t bytes = message_bytes(job_.config);
  const auto memory = job_.device.allocate(2 * bytes, "a GEMM's first call", diagnostics);
  const StreamHandle stream = job_.device.create_stream(diagnostics);
  bool good = memory != nullptr && stream != nullptr;
  for (const bool captured : {false, true}) {
    if (!good) break;
    call.input = memory->data() + input_offset;
    call.output = memory->data() + output_offset;
    good = prepare(call, captured, stream, diagnostics);
  }
  job_.device.destroy_stream(stream);
  if (!good) job_.owner.communicator->abort(diagnostics);
  return good;
}

}  // namespace mscclc::overlap
