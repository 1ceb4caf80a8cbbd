#include <fmt/format.h>

#include <ranges>

#include "runtime/core/communicator/binder.h"
#include "runtime/core/communicator/refuse.h"

namespace mscclc {

RankPlaces Binder::staged_places(uint32_t rank, bool in_place) const {
  RankPlaces places;
  if (!x_.stages(rank, kInput) && !x_.stages(rank, kOutput)) return places;
  const CallerBuffers callers =
      caller_buffers(contract_, *chunking_, rank, in_place || x_.access.together(rank));
  for (const uint32_t side : {kInput, kOutput}) {
    if (!x_.stages(rank, side) && !callers.shared) continue;
    places.side[side] = {Kind::staging, side, 0};
    if (!callers.shared) continue;
    places.side[side] = {Kind::staging, callers.outer,
                         side == callers.outer ? 0 : callers.inner_offset};
  }
  return places;
}

/// False: what was registered there is gone. `registered`: whether the buffer lies in one.
bool Binder::place_registered(uint32_t side, bool& registered) {
  bool stale = false;
  const uint64_t needed = callers_bytes(side);
  // The last one first: where others lie, too, it is what the memory was registered for.
  for (const auto& [number, buffer] : std::views::reverse(x_.group->buffers.all())) {
    const uint8_t* at = pointers_[side];
    if (at < buffer->address || at >= buffer->address + buffer->bytes) continue;
    const auto offset = static_cast<uint64_t>(at - buffer->address);
    if (needed > buffer->bytes - offset) continue;
    if (!buffer->held->is_there()) {
      stale = true;
      continue;
    }
    places_[x_.rank].side[side] = {Kind::registered, number, offset};
    return true;
  }
  registered &= needed == 0;
  if (!stale) return true;
  diagnostics_
      .error(
          "stale-registration", {},
          fmt::format("the {} of rank {} lies in a registered buffer whose memory has been freed "
                      "since: what is there now is not what the other ranks have mapped",
                      name_of(side), x_.rank))
      .notes.push_back({.text = "destroy the RegisteredBuffer on all ranks before its memory is "
                                "freed, and register the new memory"});
  return false;
}

// Zero copy: where this rank's buffers lie, and new staging if they are not registered. In place
// they stay so there, as those of other ranks do: a mixture is not proved.
bool Binder::choose_places(std::vector<uint8_t>& message) {
  bool registered = true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (x_.stages(x_.rank, side) && !place_registered(side, registered)) return false;
  }
  if (!registered && asked_.row_pitch != 0) {
    return refuse(diagnostics_, "message-size",
                  "rows that lie apart, of a plan that was loaded for zero copy, must lie in "
                  "registered buffers");
  }
  const auto in_place = static_cast<uint8_t>(CallFacts::Placement::in_place);
  if (!registered) {
    places_[x_.rank] = staged_places(x_.rank, facts_.record.placement == in_place);
  }
  encode(facts_, message);
  encode(places_[x_.rank], message);
  for (const uint32_t side : {kInput, kOutput}) {
    const BufferPlace& place = places_[x_.rank].side[side];
    const bool wanted = place.kind == Kind::staging && place.buffer == side &&
                        x_.memory.staging(x_.rank, side) == nullptr;
    message.push_back(wanted ? 1 : 0);
    offered_[side] = wanted;
    if (wanted && !x_.memory.offer_staging(side, message, diagnostics_)) return false;
  }
  return true;
}

/// All ranks compare the same messages: they all go on, or none does. Leaves places in `messages`.
bool Binder::same_calls(std::vector<std::vector<uint8_t>>& messages) {
  std::vector<CallFacts> calls(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) {
    std::span<const uint8_t> rest = messages[r];
    if (!decode(rest, calls[r])) {
      return refuse(diagnostics_, "bad-message", "a peer's message does not describe its call");
    }
    messages[r].erase(messages[r].begin(), messages[r].end() - static_cast<ptrdiff_t>(rest.size()));
  }
  return mscclc::same_calls(calls, "bind", x_.group->buffers.overlaps(), diagnostics_);
}

bool Binder::take_places(const std::vector<std::vector<uint8_t>>& messages) {
  for (uint32_t r = 0; r < messages.size(); ++r) {
    if (r == x_.rank) continue;
    std::span<const uint8_t> rest = messages[r];
    if (!decode(rest, places_[r])) {
      return refuse(diagnostics_, "bad-message", "a peer's message is not a list of places");
    }
    for (const uint32_t side : {kInput, kOutput}) {
      if (rest.empty()) return refuse(diagnostics_, "bad-message", "a peer's message is cut off");
      const bool comes = rest[0] != 0;
      rest = rest.subspan(1);
      if (comes && !x_.memory.map_staging(r, side, rest, diagnostics_)) return false;
    }
  }
  return true;
}

/// The registered buffer that is this side's on all members; nullopt: there is none.
std::optional<uint64_t> Binder::buffer_of(const Switches::Members& members, uint32_t side) const {
  const BufferPlace& first = places_[members.front()].side[side];
  for (const uint32_t member : members) {
    const BufferPlace& place = places_[member].side[side];
    if (place.kind != Kind::registered || place.buffer != first.buffer) return std::nullopt;
  }
  return first.buffer;
}

/// What a call is the first to use at the plan's switches. All ranks know all places, so it is the
/// same on all of them.
std::set<std::pair<uint64_t, Switches::Members>> Binder::buffers_to_join() const {
  std::set<std::pair<uint64_t, Switches::Members>> found;
  for (const Switches::Members& members : x_.on_device.switches.teams()) {
    for (const uint32_t side : {kInput, kOutput}) {
      const auto number = buffer_of(members, side);
      if (number && !x_.group->buffers.is_joined(*number, members)) {
        found.emplace(*number, members);
      }
    }
  }
  return found;
}

// Collective: joins registered buffers at the plan's switches.
bool Binder::join_buffers() {
  RankGroup& group = *x_.group;
  for (const auto& [number, members] : buffers_to_join()) {
    group.buffers.join(number, members);
    SharedBuffer* const buffer = group.buffers.find(number);
    SwitchRegion region{nullptr, 0};
    if (buffer != nullptr && buffer->bytes > 0) region = {buffer->address, buffer->bytes};
    std::unique_ptr<SwitchTeam> team;
    if (!group.device->join_switch(*group.bootstrap, members, {region}, team, diagnostics_)) {
      return false;
    }
    if (buffer != nullptr) buffer->teams[members] = std::move(team);
  }
  return true;
}

// Collective. False: some rank cannot make this call, and all know it.
bool Binder::exchange_places(bool able, std::vector<std::vector<uint8_t>>& messages) {
  places_.assign(places_.size(), {});
  std::vector<uint8_t> message;
  able = able && choose_places(message);
  return x_.group->exchange(able, message, "bind a call", messages, diagnostics_);
}

/// What a rank has registered, or its staging, as mapped here; nullptr: it is not.
const Memory* Binder::place_memory(uint32_t rank, uint32_t side) const {
  const BufferPlace& place = places_[rank].side[side];
  const auto mapped = [rank](const auto& peers) -> const Memory* {
    return rank < peers.size() ? peers[rank].get() : nullptr;
  };
  if (place.kind == Kind::registered) {
    const SharedBuffer* const buffer = x_.group->buffers.find(place.buffer);
    return buffer == nullptr ? nullptr : mapped(buffer->peers);
  }
  if (place.kind != Kind::staging || place.buffer > kOutput) return nullptr;
  return x_.memory.staging(rank, static_cast<uint32_t>(place.buffer));
}

/// Where a buffer lies as this rank's ops address it. nullptr: it is not mapped here, or is not all
/// of it inside what its rank has shared.
uint8_t* Binder::place_address(uint32_t rank, uint32_t side) const {
  const BufferPlace& place = places_[rank].side[side];
  if (rank == x_.rank && place.kind != Kind::staging) return pointers_[side];
  const Memory* memory = place_memory(rank, side);
  if (memory == nullptr || place.offset > memory->bytes() ||
      bytes(rank, side) > memory->bytes() - place.offset) {
    return nullptr;
  }
  return memory->data() + place.offset;
}

bool Binder::refuse_place(uint32_t rank, uint32_t side) {
  const Memory* memory = place_memory(rank, side);
  if (memory == nullptr) {
    return refuse(diagnostics_, "not-mapped",
                  fmt::format("the {} of rank {} is not mapped here: its registered buffer has "
                              "been destroyed on this rank",
                              name_of(side), rank));
  }
  return refuse(
      diagnostics_, "outside-buffer",
      fmt::format("the plan addresses {} bytes of rank {}'s {}, from byte {} of what that "
                  "rank shares, which has {}",
                  bytes(rank, side), rank, name_of(side), places_[rank].side[side].offset,
                  memory->bytes()));
}

uint8_t* Binder::address(uint32_t rank, uint32_t buffer) {
  if (buffer >= kFirstScratch) return x_.memory.regions()[rank].scratch(buffer);
  return place_address(rank, buffer);
}

// The regions of PlanLoader::join_switches(), and registered buffers.
std::optional<Switches::Spot> Binder::spot(uint32_t rank, uint32_t buffer) const {
  if (buffer >= kFirstScratch) {
    const PeerMemory& memory = x_.memory.regions()[rank];
    const auto* begin = reinterpret_cast<const uint8_t*>(memory.arrived(0));
    return Switches::Spot{0, static_cast<uint64_t>(memory.scratch(buffer) - begin)};
  }
  const BufferPlace& place = places_[rank].side[buffer];
  if (place.kind == Kind::registered) return Switches::Spot{place.buffer, place.offset, true};
  if (place.kind != Kind::staging || place.buffer > kOutput) return std::nullopt;
  return Switches::Spot{1 + place.buffer, place.offset};
}

const SwitchTeam* Binder::joined_team(uint64_t buffer, const Switches::Members& members) const {
  const SharedBuffer* const registered = x_.group->buffers.find(buffer);
  if (registered == nullptr) return nullptr;
  const auto team = registered->teams.find(members);
  return team == registered->teams.end() ? nullptr : team->second.get();
}

/// Where a side begins in the buffer that holds it, in a call in place; else 0.
uint64_t Binder::offset_in_place(uint32_t rank, uint32_t side) const {
  if (facts_.record.placement != static_cast<uint8_t>(CallFacts::Placement::in_place)) return 0;
  const CallerBuffers callers = caller_buffers(contract_, *chunking_, rank, true, callers_pitch_);
  return callers.shared && callers.outer != side ? callers.inner_offset : 0;
}

/// This rank's places stand for those of all others: of buffers in place, where the outer one lies.
/// Sides that only their own rank's ops touch are of no interest.
bool Binder::place_symmetric() {
  const auto ranks = static_cast<uint32_t>(places_.size());
  places_.assign(ranks, {});
  for (const uint32_t side : {kInput, kOutput}) {
    bool staged = false, registered = true;
    for (uint32_t r = 0; r < ranks; ++r) staged = staged || x_.stages(r, side);
    if (!staged) continue;
    if (!place_registered(side, registered)) return false;
    BufferPlace own = places_[x_.rank].side[side];
    const uint64_t inside = offset_in_place(x_.rank, side);
    if (!registered || own.offset < inside) {
      return refuse(diagnostics_, "outside-buffer",
                    fmt::format("the {} of rank {} does not lie in one registered buffer",
                                name_of(side), x_.rank));
    }
    own.offset -= inside;
    place_in(facts_.record, side_of(side), own);
    for (uint32_t r = 0; r < ranks; ++r) {
      BufferPlace& place = places_[r].side[side];
      place = x_.stages(r, side) ? own : BufferPlace{};
      if (x_.stages(r, side)) place.offset += offset_in_place(r, side);
    }
  }
  return true;
}

}  // namespace mscclc
