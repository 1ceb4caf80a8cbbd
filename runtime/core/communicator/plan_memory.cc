// What a plan would need of a device before it is loaded, for callers that choose how large its
// calls may be.
#include <algorithm>

#include "executor/lower.h"
#include "ir/program/program.h"
#include "runtime/api/communicator.h"
#include "runtime/core/communicator/call/placement.h"
#include "runtime/core/communicator/load/loaded_plan.h"

namespace mscclc {
namespace {

constexpr Side kSides[] = {Side::input, Side::output};

Chunking capacity_of(const Program& plan, const LoadOptions& options) {
  const uint64_t part = Chunking::part_for_message(plan.contract, options.max_bytes, 1);
  return {plan.contract, part, capacity_granule(plan)};
}

/// False: it is too large.
bool scratch_of(const Program& plan, uint32_t rank, const Chunking& capacity, uint64_t& bytes) {
  std::vector<BufferLayout> layout;
  Diagnostics ignored;
  if (!scratch_layout(plan, rank, capacity, layout, ignored)) return false;
  bytes = 0;
  for (const BufferLayout& b : layout) bytes += b.stride * b.copies;
  return true;
}

}  // namespace

std::optional<PlanMemory> memory_of(const Program& plan, const LoadOptions& options) {
  const Chunking capacity = capacity_of(plan, options);
  const PeerAccess access(plan);
  PlanMemory most;
  for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
    uint64_t scratch = 0, staging = 0;
    if (!scratch_of(plan, r, capacity, scratch)) return std::nullopt;
    for (const uint32_t side : {kInput, kOutput}) {
      const bool staged = !options.zero_copy && access.stages(r, side);
      if (staged) staging += capacity.most_buffer_bytes(kSides[side], r);
    }
    most.scratch = std::max(most.scratch, scratch);
    most.staging = std::max(most.staging, staging);
  }
  return most;
}

}  // namespace mscclc
