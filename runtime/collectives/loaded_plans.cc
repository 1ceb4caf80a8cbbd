#include "runtime/collectives/loaded_plans.h"

#include <algorithm>
#include <bit>

#include "executor/lower.h"

namespace mscclc {
namespace {

/// Room for messages so large costs little, and saves loading again for the next size.
constexpr uint64_t kLeastRoom = uint64_t{4} << 20;

uint64_t room_for(uint64_t bytes, uint64_t most) {
  return std::min(most, std::max(kLeastRoom, std::bit_ceil(bytes)));
}

}  // namespace

LoadedPlans::Plan& LoadedPlans::plan_of(const PickedPlan& picked) {
  const auto found = plans_.find(picked.plan.get());
  if (found != plans_.end()) return found->second;
  Plan plan{picked.plan, use_of(*picked.plan).sentinel, {}};
  return plans_.emplace(picked.plan.get(), std::move(plan)).first->second;
}

Executable* LoadedPlans::find(const PickedPlan& picked, const Need& need) {
  const Plan& plan = plan_of(picked);
  for (const Variant& v : plan.variants) {
    if (v.options.max_bytes < need.bytes) continue;
    if (plan.by_width && info(v.options.dtype).bytes != info(need.dtype).bytes) continue;
    // Where no rank's ops address another's buffers, zero copy means nothing.
    const bool either = v.options.zero_copy && !v.executable->binds_together();
    if (v.options.zero_copy == need.zero_copy || either) return v.executable.get();
  }
  return nullptr;
}

Executable* LoadedPlans::load(const PickedPlan& picked, const Need& need,
                              Diagnostics& diagnostics) {
  // The provider has seen to the plan's proof, whatever MSCCLC_PROOF says: load() finds it known.
  const LoadOptions options{.max_bytes = room_for(need.bytes, picked.max_bytes),
                            .dtype = need.dtype,
                            .zero_copy = need.zero_copy,
                            .plan_file = picked.file};
  auto executable = communicator_.load(picked.plan, options, diagnostics);
  if (executable == nullptr) return nullptr;
  ++count_;
  return plan_of(picked)
      .variants.emplace_back(Variant{options, std::move(executable)})
      .executable.get();
}

}  // namespace mscclc
