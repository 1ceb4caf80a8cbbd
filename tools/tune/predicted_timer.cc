#include "tools/tune/predicted_timer.h"

#include "executor/cost/model.h"

namespace mscclc::tune {

std::optional<CallTime> PredictedTimer::time(const TimedCall& call, Diagnostics& diagnostics) {
  cost::Model model(*call.plan);
  const Call what = cost::call_of(*call.plan, call.bytes, call.dtype, call.op);
  const auto timeline = model.predict(what, machine_, diagnostics);
  if (!timeline) return std::nullopt;
  return CallTime{.ns = timeline->back_to_back_ns};
}

}  // namespace mscclc::tune
