#include "runtime/core/communicator/load/loaded_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/core/device/links.h"

namespace mscclc {
namespace {

uint64_t part_bytes(const Contract& contract, const LoadOptions& options) {
  return Chunking::part_for_message(contract, options.max_bytes, 1);
}

bool stages_any(const PeerAccess& access, const LoadOptions& options, uint32_t side) {
  if (options.zero_copy) return false;
  for (uint32_t r = 0; r < access.ranks(); ++r) {
    if (access.stages(r, side)) return true;
  }
  return false;
}

}  // namespace

uint32_t capacity_granule(const Program& plan) { return plan.granule(Dtype::f32); }

LoadedPlan::LoadedPlan(std::shared_ptr<RankGroup> group, std::shared_ptr<const Program> plan,
                       const LoadOptions& options)
    : group(std::move(group)),
      plan(std::move(plan)),
      options(options),
      rank(this->group->rank()),
      element(info(options.dtype).bytes),
      access(*this->plan),
      takes_pieces(mscclc::takes_pieces(*this->plan, options)),
      staged_rows{stages_any(access, options, kInput), stages_any(access, options, kOutput)},
      capacity(this->plan->contract, part_bytes(this->plan->contract, options),
               capacity_granule(*this->plan)),
      use(use_of(*this->plan)),
      parts(Chunking::parts_of_message(this->plan->contract)),
      number(++this->group->records.loads) {
  precondition(this->plan->contract.ranks == this->group->size());
}

bool LoadedPlan::joins_switch() const {
  return std::ranges::any_of(channels(),
                             [](const Channel& c) { return c.kind == ChannelKind::switch_; });
}

bool LoadedPlan::goes_by_proxy(uint32_t channel) const {
  const Channel& c = channels()[channel];
  return c.kind == ChannelKind::port || needs_stored_signals(c, group->neighbours.links);
}

}  // namespace mscclc
