// Loading a plan: the memory that it takes, and that of the other ranks.
#include <algorithm>

#include "runtime/core/communicator/executable.h"
#include "runtime/core/communicator/refuse.h"

namespace mscclc {

bool Executable::State::lay_out(Diagnostics& diagnostics) {
  layouts_.resize(group->size());
  const auto add = [&](uint32_t r) {
    if (layouts_[r] != nullptr) return true;
    auto layout = std::make_shared<RegionLayout>();
    layouts_[r] = layout;
    return lay_out_region(*plan, r, capacity, *layout, diagnostics);
  };
  if (!add(rank)) return false;
  for (const device::Base& base : program.bases) {
    if (!add(base.rank)) return false;
  }
  for (const Channel& channel : plan->ranks[rank].channels) {
    if (channel.partner != kNone && !add(channel.peer)) return false;
  }
  return true;
}

uint64_t Executable::State::memory_bytes() const {
  const Rank& own = plan->ranks[rank];
  return DeviceStructs::bytes_of<device::RankContext>(1) +
         DeviceStructs::bytes_of<device::ChannelEnd>(own.channels.size()) +
         DeviceStructs::bytes_of<uint64_t>(own.semaphores.size()) +
         DeviceStructs::bytes_of<device::Barrier>(program.barriers.size()) +
         DeviceStructs::bytes_of<uint64_t>(1) + DeviceStructs::bytes_of<uint64_t>(counts());
}

/// Counts that all blocks keep from call to call.
uint64_t Executable::State::counts() const { return uint64_t{blocks()} * wait_slots->per_block(); }

bool Executable::State::joins_switch() const {
  const std::vector<Channel>& channels = plan->ranks[rank].channels;
  return std::any_of(channels.begin(), channels.end(),
                     [](const Channel& c) { return c.kind == ChannelKind::switch_; });
}

// What a switch joins must begin at the same place of a granule on all members.
PoolPiece Executable::State::take_shared(uint64_t bytes, const std::string& what,
                                         Diagnostics& diagnostics) {
  MemoryPool& pool = *group->shared_memory;
  return joins_switch() ? pool.take_alone(*group->device, bytes, what, diagnostics)
                        : pool.take(*group->device, bytes, what, diagnostics);
}

bool Executable::State::shares_scratch() const {
  return scratch_in_call_ && layouts_[rank]->scratch_bytes > 0 && !joins_switch() &&
         !only_far_lanes_write();
}

/// The counts of a plan are its own, whatever becomes of its scratch.
bool Executable::State::take_region(Diagnostics& diagnostics) {
  constexpr const char* kScratch = "the scratch memory of a plan";
  const RegionLayout& layout = *layouts_[rank];
  std::shared_ptr<Memory> scratch;
  if (shares_scratch()) {
    const uint32_t staged = (stages(rank, kInput) ? 1 : 0) + (stages(rank, kOutput) ? 1 : 0);
    scratch_ = take_in_turn(staged, layout.scratch_bytes, kScratch, diagnostics);
    if (!scratch_) return false;
    scratch = scratch_.memory();
  }
  const uint64_t bytes = scratch_ ? layout.counts_bytes : layout.bytes();
  region_ = only_far_lanes_write() ? group->shared_memory->take(*group->device, bytes, kScratch,
                                                                diagnostics, PoolKind::visible)
                                   : take_shared(bytes, kScratch, diagnostics);
  if (!region_) return false;
  connections.resize(group->size());
  connections[rank] = {region_.memory(), layouts_[rank], scratch};
  // What plans have in turn never holds packets.
  return scratch_ ||
         fill_scratch(*group->device, layout, region_.memory()->data() + layout.counts_bytes,
                      element, diagnostics);
}

// With an object of a graph's own the driver may hold up what its kernels wait for: calls of
// another rank on this GPU, copies of the proxy (docs/records/rejected.md).
GraphsEnd Executable::State::graphs_end() const {
  const auto channels = static_cast<uint32_t>(plan->ranks[rank].channels.size());
  bool alone = group->ranks_here == 1;
  for (uint32_t c = 0; c < channels; ++c) alone &= !goes_by_proxy(c);
  return alone ? GraphsEnd::known : GraphsEnd::unknown;
}

bool Executable::State::allocate(Diagnostics& diagnostics) {
  Device& device = *group->device;
  if (!take_region(diagnostics)) return false;
  const PoolPiece own =
      group->own_memory->take(device, memory_bytes(), "a plan's program", diagnostics);
  if (!own) return false;
  memory = own.memory();
  faults = device.allocate_visible(blocks() * sizeof(device::Fault), "reports of thread blocks",
                                   diagnostics);
  const auto source = [pool = group->own_memory, of = group->device](uint64_t bytes,
                                                                     Diagnostics& problems) {
    const PoolPiece piece = pool->take(*of, bytes, "programs of calls", problems);
    return piece ? piece.memory() : nullptr;
  };
  const uint64_t lines = compiled_kernels == nullptr ? 0 : compiled_kernels->bytes_in_memory();
  slots = std::make_shared<SlotPool>(
      group->device, std::max(BlockPrograms::most_bytes(program), lines), source, graphs_end());
  return faults != nullptr;
}

// All accesses lie between the begin and the end of this rank's call, as those to the caller's
// buffers do: calls that follow one another may have the same.
PoolPiece Executable::State::take_in_turn(uint32_t slot, uint64_t bytes, const std::string& what,
                                          Diagnostics& diagnostics) {
  std::weak_ptr<PoolBlock>& shared = group->in_turn[slot];
  std::shared_ptr<PoolBlock> block = shared.lock();
  if (block == nullptr || block->memory->bytes() < bytes) {
    block = group->shared_memory->take_alone(*group->device, bytes, what, diagnostics).block;
    shared = block;
  }
  return {block, 0, bytes};
}

PoolPiece Executable::State::take_staging(uint32_t side, uint64_t bytes, Diagnostics& diagnostics) {
  constexpr const char* kWhat = "staging buffers";
  if (!options.in_turn || joins_switch()) return take_shared(bytes, kWhat, diagnostics);
  const bool second = side == kOutput && stages(rank, kInput);
  return take_in_turn(second ? 1 : 0, bytes, kWhat, diagnostics);
}

bool Executable::State::offer_staging(uint32_t side, std::vector<uint8_t>& message,
                                      Diagnostics& diagnostics) {
  const uint64_t bytes = capacity.buffer_bytes(side == kInput ? Side::input : Side::output, rank);
  const PoolPiece piece = take_staging(side, bytes, diagnostics);
  if (!piece) return false;
  staging[side] = piece.memory();
  return piece.encode(*group->device, message, diagnostics);
}

bool Executable::State::map_staging(uint32_t peer, uint32_t side, std::span<const uint8_t>& message,
                                    Diagnostics& diagnostics) {
  const auto piece = decode_piece(message, diagnostics);
  if (!piece) return false;
  const uint64_t bytes = capacity.buffer_bytes(side == kInput ? Side::input : Side::output, peer);
  if (!needs(peer) || bytes == 0) return true;
  peer_staging[side].resize(group->size());
  peer_staging[side][peer] = take_memory(peer, *piece, bytes, diagnostics);
  return peer_staging[side][peer] != nullptr;
}

bool Executable::State::map_region(uint32_t peer, bool apart, std::span<const uint8_t>& message,
                                   Diagnostics& diagnostics) {
  const auto counts = decode_piece(message, diagnostics);
  if (!counts) return false;
  const auto scratch = apart ? decode_piece(message, diagnostics) : std::nullopt;
  if (apart && !scratch) return false;
  if (!needs(peer)) return true;
  const RegionLayout& layout = *layouts_[peer];
  auto here = take_memory(peer, *counts, apart ? layout.counts_bytes : layout.bytes(), diagnostics);
  if (here == nullptr) return false;
  std::shared_ptr<Memory> scratch_here;
  if (apart) {
    scratch_here = take_memory(peer, *scratch, layout.scratch_bytes, diagnostics);
    if (scratch_here == nullptr) return false;
  }
  connections[peer] = {std::move(here), layouts_[peer], std::move(scratch_here)};
  return true;
}

bool Executable::State::blocks_reach(uint32_t peer) const {
  const std::vector<Channel>& channels = plan->ranks[rank].channels;
  return std::any_of(channels.begin(), channels.end(), [&](const Channel& c) {
    if (c.kind != ChannelKind::switch_) return c.kind == ChannelKind::memory && c.peer == peer;
    const std::span<const int64_t> members = plan->values(c.group);
    return std::find(members.begin(), members.end(), int64_t{peer}) != members.end();
  });
}

std::shared_ptr<Memory> Executable::State::take_memory(uint32_t peer, const PieceHandle& handle,
                                                       uint64_t bytes, Diagnostics& diagnostics) {
  return import_piece(*group, peer, handle, bytes,
                      blocks_reach(peer) ? ReachedBy::blocks : ReachedBy::lanes, diagnostics);
}

// Between nodes the processor sends and receives: host memory spares it the copies to and from the
// device. Memory that blocks or copy engines of others touch must be the device's.
bool Executable::State::only_far_lanes_write() const {
  bool any = false;
  for (uint32_t r = 0; r < group->size(); ++r) {
    if (r == rank) continue;
    const bool far = group->links[r].lanes && !group->links[r].access;
    const std::vector<Channel>& channels = plan->ranks[r].channels;
    for (const Channel& c : channels) {
      if (c.kind == ChannelKind::switch_) return false;
      if (c.peer != rank) continue;
      if (c.kind != ChannelKind::port || !far) return false;
      any = true;
    }
  }
  return any && !joins_switch();
}

}  // namespace mscclc
