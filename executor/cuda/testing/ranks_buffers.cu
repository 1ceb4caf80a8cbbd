#include "executor/cuda/testing/ranks_buffers.h"
#include "executor/interpreter/packets.h"
#include "executor/oracle/values.h"

namespace mscclc::cuda {
namespace {

constexpr uint64_t kMaxShift = 128;  // bytes

uint32_t inner_of(const CallerBuffers& callers) {
  return callers.outer == kInput ? kOutput : kInput;
}

}  // namespace

bool RanksBuffers::allocate(const DeviceProgram& device, const Call& call,
                            const CudaRanks::Options& options, Diagnostics& d) {
  const Chunking chunking(program_.contract, call.part_bytes, program_.granule(call.dtype));
  ranks_.resize(program_.ranks.size());
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    const Wanted wanted{r, device.ranks[r].buffers, call, options,
                        caller_buffers(program_.contract, chunking, r, options.in_place)};
    if (!allocate(wanted, d) || !fill_scratch(wanted, d)) return false;
  }
  return true;
}

bool RanksBuffers::allocate(const Wanted& wanted, Diagnostics& d) {
  const auto& [rank, layout, call, options, callers] = wanted;
  const uint32_t inner = inner_of(callers);
  OfRank& own = ranks_[rank];
  own.buffers.resize(layout.size());
  std::vector<RankBuffer> first(layout.size());
  for (uint32_t b = 0; b < layout.size(); ++b) {
    if (callers.shared && b == inner) continue;
    const bool scratch = b >= kFirstScratch;
    const uint64_t bytes = scratch ? layout[b].stride * layout[b].copies : layout[b].bytes;
    if (!own.buffers[b].allocate(bytes + kMaxShift, d)) return false;
    const uint64_t shift = scratch ? 0 : wanted.shift_of(b);
    first[b] = {own.buffers[b].data() + shift, shift, bytes + kMaxShift};
  }
  if (callers.shared) first[inner] = first[callers.outer].shifted(callers.inner_offset);
  own.addresses.assign(1, std::move(first));
  own.later.clear();
  while (own.addresses.size() < options.calls) {
    if (!add_call(wanted, d)) return false;
  }
  return true;
}

/// Makes the caller's buffers of one call more.
bool RanksBuffers::add_call(const Wanted& wanted, Diagnostics& d) {
  const CallerBuffers& callers = wanted.callers;
  OfRank& own = ranks_[wanted.rank];
  const uint32_t inner = inner_of(callers);
  std::vector<RankBuffer> next = own.addresses.back();
  const RankBuffer before = next[kOutput];
  if (wanted.options.chained && callers.shared) return own.addresses.push_back(next), true;
  for (const uint32_t b : {kInput, kOutput}) {
    if (callers.shared && b == inner) continue;
    if (wanted.options.chained && b == kInput) {
      next[b] = before;
      continue;
    }
    if (!own.later.emplace_back().allocate(next[b].bytes, d)) return false;
    next[b].address = own.later.back().data() + next[b].offset;
  }
  if (callers.shared) next[inner] = next[callers.outer].shifted(callers.inner_offset);
  own.addresses.push_back(std::move(next));
  return true;
}

uint64_t RanksBuffers::Wanted::shift_of(uint32_t buffer) const {
  if (!options.shifted) return options.offset;
  return (3 * rank + 5 * buffer + 1) * info(call.dtype).bytes % kMaxShift;
}

/// Empties the slots of sentinels. Plain scratch gets the simulator's bytes: a program that reads
/// it before anything is there then gives the same here.
bool RanksBuffers::fill_scratch(const Wanted& wanted, Diagnostics& d) {
  OfRank& own = ranks_[wanted.rank];
  const device::Stamp stamp = device::stamp_of(0, info(wanted.call.dtype).bytes);
  for (uint32_t b = kFirstScratch; b < wanted.layout.size(); ++b) {
    const BufferLayout& layout = wanted.layout[b];
    const bool sentinels = is_sentinel(layout.packets);
    if (!sentinels && layout.packets != PacketFormat::none) continue;
    const uint64_t word = sentinels ? stamp.sentinel : ~uint64_t{0} / 255 * kUnwrittenByte;
    const std::vector<uint64_t> filled(layout.stride * layout.copies / 8, word);
    if (!own.buffers[b].upload(filled, d)) return false;
    for (std::vector<RankBuffer>& in_call : own.addresses) {
      in_call[b].address = own.buffers[b].data();
    }
  }
  return true;
}

}  // namespace mscclc::cuda
