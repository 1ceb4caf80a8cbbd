#include "runtime/core/communicator/load/loaded_memory.h"

#include <algorithm>
#include <utility>

namespace mscclc {

bool LoadedMemory::lay_out(const RankProgram& program, Diagnostics& diagnostics) {
  layouts_.resize(x_.group->size());
  const auto add = [&](uint32_t r) {
    if (layouts_[r] != nullptr) return true;
    auto layout = std::make_shared<RegionLayout>();
    layouts_[r] = layout;
    return lay_out_region(*x_.plan, r, x_.capacity, *layout, diagnostics);
  };
  if (!add(x_.rank)) return false;
  for (const device::Base& base : program.bases) {
    if (!add(base.rank)) return false;
  }
  for (const Channel& channel : x_.channels()) {
    if (channel.partner != kNone && !add(channel.peer)) return false;
  }
  return true;
}

// What a switch joins must begin at the same place of a granule on all members.
PoolPiece LoadedMemory::take_shared(uint64_t bytes, const std::string& what,
                                    Diagnostics& diagnostics) {
  MemoryPool& pool = *x_.group->memory.shared;
  Device& device = *x_.group->device;
  return x_.joins_switch() ? pool.take_alone(device, bytes, what, diagnostics)
                           : pool.take(device, bytes, what, diagnostics);
}

bool LoadedMemory::shares_scratch() const {
  return layouts_[x_.rank]->scratch_bytes > 0 && !x_.joins_switch() && !only_far_lanes_write();
}

/// The counts of a plan are its own, whatever becomes of its scratch.
bool LoadedMemory::take_region(bool scratch_in_call, Diagnostics& diagnostics) {
  constexpr const char* kScratch = "the scratch memory of a plan";
  RankGroup& group = *x_.group;
  const RegionLayout& layout = *layouts_[x_.rank];
  std::shared_ptr<Memory> scratch;
  if (scratch_in_call && shares_scratch()) {
    const uint32_t staged =
        (x_.stages(x_.rank, kInput) ? 1 : 0) + (x_.stages(x_.rank, kOutput) ? 1 : 0);
    scratch_ = take_in_turn(staged, layout.scratch_bytes, kScratch, diagnostics);
    if (!scratch_) return false;
    scratch = scratch_.memory();
  }
  const uint64_t bytes = scratch_ ? layout.counts_bytes : layout.bytes();
  region_ = only_far_lanes_write() ? group.memory.shared->take(*group.device, bytes, kScratch,
                                                               diagnostics, PoolKind::visible)
                                   : take_shared(bytes, kScratch, diagnostics);
  if (!region_) return false;
  regions_.resize(group.size());
  regions_[x_.rank] = {region_.memory(), layouts_[x_.rank], scratch};
  // What plans have in turn never holds packets.
  return scratch_ ||
         fill_scratch(*group.device, layout, region_.memory()->data() + layout.counts_bytes,
                      x_.element, diagnostics);
}

bool LoadedMemory::allocate(uint64_t program_bytes, bool scratch_in_call,
                            Diagnostics& diagnostics) {
  Device& device = *x_.group->device;
  if (!take_region(scratch_in_call, diagnostics)) return false;
  const PoolPiece program =
      x_.group->memory.own->take(device, program_bytes, "a plan's program", diagnostics);
  if (!program) return false;
  program_ = program.memory();
  faults_ = device.allocate_visible(x_.blocks() * sizeof(device::Fault), "reports of thread blocks",
                                    diagnostics);
  return faults_ != nullptr;
}

bool LoadedMemory::offer_region(std::vector<uint8_t>& message, Diagnostics& diagnostics) const {
  message.push_back(scratch_ ? 1 : 0);
  if (!region_.encode(*x_.group->device, message, diagnostics)) return false;
  return !scratch_ || scratch_.encode(*x_.group->device, message, diagnostics);
}

// All accesses lie between the begin and the end of this rank's call, as those to the caller's
// buffers do: calls that follow one another may have the same.
PoolPiece LoadedMemory::take_in_turn(uint32_t slot, uint64_t bytes, const std::string& what,
                                     Diagnostics& diagnostics) {
  std::weak_ptr<PoolBlock>& shared = x_.group->memory.in_turn[slot];
  std::shared_ptr<PoolBlock> block = shared.lock();
  if (block == nullptr || block->memory->bytes() < bytes) {
    block = x_.group->memory.shared->take_alone(*x_.group->device, bytes, what, diagnostics).block;
    shared = block;
  }
  return {block, 0, bytes};
}

PoolPiece LoadedMemory::take_staging(uint32_t side, uint64_t bytes, Diagnostics& diagnostics) {
  constexpr const char* kWhat = "staging buffers";
  if (!x_.options.in_turn || x_.joins_switch()) return take_shared(bytes, kWhat, diagnostics);
  const bool second = side == kOutput && x_.stages(x_.rank, kInput);
  return take_in_turn(second ? 1 : 0, bytes, kWhat, diagnostics);
}

bool LoadedMemory::offer_staging(uint32_t side, std::vector<uint8_t>& message,
                                 Diagnostics& diagnostics) {
  const uint64_t bytes =
      x_.capacity.most_buffer_bytes(side == kInput ? Side::input : Side::output, x_.rank);
  const PoolPiece piece = take_staging(side, bytes, diagnostics);
  if (!piece) return false;
  staging_[side] = piece.memory();
  return piece.encode(*x_.group->device, message, diagnostics);
}

bool LoadedMemory::map_staging(uint32_t peer, uint32_t side, std::span<const uint8_t>& message,
                               Diagnostics& diagnostics) {
  const auto piece = decode_piece(message, diagnostics);
  if (!piece) return false;
  const uint64_t bytes =
      x_.capacity.most_buffer_bytes(side == kInput ? Side::input : Side::output, peer);
  if (!needs(peer) || bytes == 0) return true;
  peer_staging_[side].resize(x_.group->size());
  peer_staging_[side][peer] = map(peer, *piece, bytes, diagnostics);
  return peer_staging_[side][peer] != nullptr;
}

bool LoadedMemory::map_region(uint32_t peer, bool apart, std::span<const uint8_t>& message,
                              Diagnostics& diagnostics) {
  const auto counts = decode_piece(message, diagnostics);
  if (!counts) return false;
  const auto scratch = apart ? decode_piece(message, diagnostics) : std::nullopt;
  if (apart && !scratch) return false;
  if (!needs(peer)) return true;
  const RegionLayout& layout = *layouts_[peer];
  auto here = map(peer, *counts, apart ? layout.counts_bytes : layout.bytes(), diagnostics);
  if (here == nullptr) return false;
  std::shared_ptr<Memory> scratch_here;
  if (apart) {
    scratch_here = map(peer, *scratch, layout.scratch_bytes, diagnostics);
    if (scratch_here == nullptr) return false;
  }
  regions_[peer] = {std::move(here), layouts_[peer], std::move(scratch_here)};
  return true;
}

bool LoadedMemory::blocks_reach(uint32_t peer) const {
  return std::ranges::any_of(x_.channels(), [&](const Channel& c) {
    if (c.kind != ChannelKind::switch_) return c.kind == ChannelKind::memory && c.peer == peer;
    const std::span<const int64_t> members = x_.plan->values(c.group);
    return std::find(members.begin(), members.end(), int64_t{peer}) != members.end();
  });
}

std::shared_ptr<Memory> LoadedMemory::map(uint32_t peer, const PieceHandle& handle, uint64_t bytes,
                                          Diagnostics& diagnostics) {
  return import_piece(*x_.group, peer, handle, bytes,
                      blocks_reach(peer) ? ReachedBy::blocks : ReachedBy::lanes, diagnostics);
}

// Between nodes the processor sends and receives: host memory spares it the copies to and from the
// device. Memory that blocks or copy engines of others touch must be the device's.
bool LoadedMemory::only_far_lanes_write() const {
  bool any = false;
  for (uint32_t r = 0; r < x_.group->size(); ++r) {
    if (r == x_.rank) continue;
    const bool far = x_.group->neighbours.links[r].lanes && !x_.group->neighbours.links[r].access;
    const std::vector<Channel>& channels = x_.plan->ranks[r].channels;
    for (const Channel& c : channels) {
      if (c.kind == ChannelKind::switch_) return false;
      if (c.peer != x_.rank) continue;
      if (c.kind != ChannelKind::port || !far) return false;
      any = true;
    }
  }
  return any && !x_.joins_switch();
}

const Memory* LoadedMemory::staging(uint32_t of, uint32_t side) const {
  if (of == x_.rank) return staging_[side].get();
  const std::vector<std::shared_ptr<Memory>>& peers = peer_staging_[side];
  return of < peers.size() ? peers[of].get() : nullptr;
}

std::vector<device::ChannelEnd> LoadedMemory::channel_ends() const {
  std::vector<device::ChannelEnd> ends;
  const std::vector<Channel>& channels = x_.channels();
  for (uint32_t c = 0; c < channels.size(); ++c) {
    const Channel& channel = channels[c];
    uint64_t* partner =
        channel.partner == kNone ? nullptr : regions_[channel.peer].arrived(channel.partner);
    ends.push_back({regions_[x_.rank].arrived(c), partner, 0,
                    static_cast<uint64_t>(x_.goes_by_proxy(c) ? 1 : 0)});
  }
  return ends;
}

}  // namespace mscclc
