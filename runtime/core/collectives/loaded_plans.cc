#include "runtime/core/collectives/loaded_plans.h"

#include <algorithm>
#include <bit>

#include "executor/lower.h"
#include "runtime/api/pick_for_job.h"

namespace mscclc {
namespace {

/// Room for messages so large costs little, and saves loading again for the next size.
constexpr uint64_t kLeastRoom = uint64_t{4} << 20;
constexpr uint64_t kUnlimited = ~uint64_t{0};

}  // namespace

LoadedPlans::Plan& LoadedPlans::plan_of(const PickedPlan& picked) {
  const auto found = plans_.find(picked.plan.get());
  if (found != plans_.end()) return found->second;
  // Where no rank's ops address another's buffers, nothing is staged, and zero copy means nothing.
  const auto memory = memory_of(*picked.plan, {.max_bytes = piece_bytes_});
  Plan plan{picked.plan, use_of(*picked.plan).sentinel, !memory || memory->staging > 0, {}, {}};
  return plans_.emplace(picked.plan.get(), std::move(plan)).first->second;
}

uint64_t LoadedPlans::most_at_once(const PickedPlan& picked, const Need& need) {
  Plan& plan = plan_of(picked);
  std::optional<uint64_t>& most = plan.most[need.zero_copy ? 1 : 0];
  if (!most) most = mscclc::most_at_once(*plan.program, piece_bytes_, need.zero_copy);
  return *most;
}

Executable* LoadedPlans::find(const PickedPlan& picked, const Need& need) {
  const Plan& plan = plan_of(picked);
  for (const Variant& v : plan.variants) {
    if (v.options.max_bytes < need.bytes) continue;
    if (plan.by_width && info(v.options.dtype).bytes != info(need.dtype).bytes) continue;
    if (v.options.zero_copy == (need.zero_copy && plan.stages)) return v.executable.get();
  }
  return nullptr;
}

Executable* LoadedPlans::load(const PickedPlan& picked, const Need& need, const std::string& call,
                              uint64_t ahead, Diagnostics& diagnostics) {
  const uint64_t at_once = most_at_once(picked, need);
  const uint64_t room = at_once == kUnlimited ? std::max(kLeastRoom, std::bit_ceil(need.bytes))
                                              : std::max(at_once, need.bytes);
  // The provider has seen to the plan's proof, whatever MSCCLC_PROOF says: load() finds it known.
  const LoadOptions options{.max_bytes = std::max(need.bytes, std::min(picked.max_bytes, room)),
                            .dtype = need.dtype,
                            .zero_copy = need.zero_copy && plan_of(picked).stages,
                            .in_turn = true,
                            .plan_file = picked.file,
                            .keeps_order = false,  // the provider has seen to what calls ask
                            .call = call,
                            .calls_ahead = ahead};
  auto executable = communicator_.load(picked.plan, options, diagnostics);
  if (executable == nullptr) return nullptr;
  ++count_;
  return plan_of(picked)
      .variants.emplace_back(Variant{options, std::move(executable)})
      .executable.get();
}

}  // namespace mscclc
