#include <algorithm>

#include "executor/cuda/testing/ranks_programs.h"

namespace mscclc::cuda {

using device::ChannelEnd;
using device::LaunchPlan;

void RanksPrograms::clear(uint32_t calls, uint64_t first_call) {
  counted_ = false;
  first_call_ = first_call;
  programs_.clear();
  packed_.clear();
  programs_.resize(calls);
  packed_.resize(calls);
}

bool RanksPrograms::pack_ranks(uint32_t in_call, const DeviceProgram& device,
                               const std::vector<Rank>& ranks, const std::vector<ChannelEnd>& ends,
                               bool keep, LaunchPlan& launch, Diagnostics& d) {
  std::vector<uint8_t>& bytes = packed_[in_call];
  of_ranks_.assign(ranks.size(), {});
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const WaitSlots slots(device.ranks[r]);
    BlockPrograms& own = of_ranks_[r];
    if (!own.pack(device.ranks[r], ranks[r].places(ends), slots, launch.program_bytes)) {
      d.error("too-large", {}, std::string(own.refusal()));
      return false;
    }
    launch.program_bytes = std::max(launch.program_bytes, own.stride());
    launch.call_counts = std::max(launch.call_counts, slots.per_block());
    launch.uses |= own.uses();
    if (keep) bytes.insert(bytes.end(), own.data(), own.data() + own.bytes());
  }
  return true;
}

// The programs of all ranks have one length, and as many counts a block: the first time shows
// which.
bool RanksPrograms::pack(uint32_t in_call, const DeviceProgram& device,
                         const std::vector<Rank>& ranks, const std::vector<ChannelEnd>& ends,
                         bool carried, LaunchPlan& launch, Diagnostics& d) {
  launch.uses = 0;
  if (!pack_ranks(in_call, device, ranks, ends, false, launch, d) ||
      !pack_ranks(in_call, device, ranks, ends, true, launch, d)) {
    return false;
  }
  if (!counted_) {
    std::vector<uint64_t> counts(uint64_t{launch.blocks} * launch.call_counts);
    for (uint64_t i = 0; i < counts.size(); i += launch.call_counts) counts[i] = first_call_;
    if (!counts_.upload(counts, d)) return false;
    counted_ = true;
  }
  const std::vector<uint8_t>& bytes = packed_[in_call];
  launch.calls = counts_.data<uint64_t>();
  launch.carried = carried && bytes.size() <= device::kMaxCarried;
  launch.programs = bytes.data();
  if (launch.carried) return true;
  if (!programs_[in_call].upload(bytes, d)) return false;
  launch.programs = programs_[in_call].data();
  return true;
}

}  // namespace mscclc::cuda
