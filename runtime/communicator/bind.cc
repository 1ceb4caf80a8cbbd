// Fitting a plan to a call: which bytes its ops move, where the caller's buffers of all ranks lie.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "runtime/base/environment.h"
#include "runtime/communicator/executable.h"
#include "runtime/communicator/refuse.h"

namespace mscclc {
namespace {

using Kind = BufferPlace::Kind;

Side side_of(uint32_t side) { return side == kInput ? Side::input : Side::output; }
const char* name_of(uint32_t side) { return side == kInput ? "input" : "output"; }

/// Messages up to which calls begin early. A launch takes a microsecond or two, of some 80 for so
/// many bytes; blocks of the next call that wait longer take room from kernels of other streams.
constexpr uint64_t kMostEarlyBytes = uint64_t{16} << 20;

}  // namespace

/// One bind().
class Binder {
 public:
  Binder(Executable::State& executable, const CallOptions& options, Diagnostics& diagnostics)
      : x_(executable),
        options_(options),
        diagnostics_(diagnostics),
        contract_(executable.plan->contract),
        pointers_{static_cast<uint8_t*>(const_cast<void*>(options.input)),
                  static_cast<uint8_t*>(options.output)},
        places_(executable.places) {}

  std::shared_ptr<BoundCall::State> run();
  /// True if run() would wait for the other ranks.
  bool waits();

 private:
  std::shared_ptr<BoundCall::State> run_symmetric();
  std::shared_ptr<BoundCall::State> run_together();
  std::shared_ptr<BoundCall::State> try_together();
  std::shared_ptr<BoundCall::State> make();
  void describe();
  std::shared_ptr<BoundCall::State> blank();
  bool prepare();
  bool patch();
  bool check_size();
  bool empty() const;
  bool check_pointers();
  bool choose_places(std::vector<uint8_t>& message);
  bool place_registered(uint32_t side, bool& registered);
  RankPlaces staged_places(uint32_t rank) const;
  bool same_calls(std::vector<std::vector<uint8_t>>& messages);
  bool take_places(const std::vector<std::vector<uint8_t>>& messages);
  bool exchange_places(bool able, std::vector<std::vector<uint8_t>>& messages);
  std::optional<uint64_t> buffer_of(const Switches::Members& members, uint32_t side) const;
  bool place_symmetric();
  std::set<std::pair<uint64_t, Switches::Members>> buffers_to_join() const;
  bool join_buffers();
  uint8_t* address(uint32_t rank, uint32_t buffer);
  std::optional<Switches::Spot> spot(uint32_t rank, uint32_t buffer) const;
  const SwitchTeam* joined_team(uint64_t buffer, const Switches::Members& members) const;
  uint8_t* place_address(uint32_t rank, uint32_t side) const;
  const Memory* place_memory(uint32_t rank, uint32_t side) const;
  bool refuse_place(uint32_t rank, uint32_t side);
  bool take_slot(BoundCall::State& made);
  bool write_programs(BoundCall::State& made);
  bool pack_programs(BoundCall::State& made, const std::vector<device::BaseAddress>& bases);
  bool place_lines(BoundCall::State& made);
  bool check_fit(BoundCall::State& made);
  void shorten(BoundCall::State& made) const;
  void plan_copies(BoundCall::State& made) const;
  /// Of a buffer as ops address it: the caller's, or staging.
  uint64_t bytes(uint32_t rank, uint32_t side) const { return bytes(rank, side, pitch_); }
  /// Of this rank's own buffer of the caller.
  uint64_t callers_bytes(uint32_t side) const { return bytes(x_.rank, side, callers_pitch_); }
  uint64_t bytes(uint32_t rank, uint32_t side, const RowPitch& pitch) const {
    return chunking_->buffer_bytes(side_of(side), rank) +
           pitch.gaps_of(contract_, side_of(side), rank);
  }
  bool set_pitch();
  void copy_parts(uint32_t side, uint64_t begin, uint64_t end, std::vector<StagingCopy>& to) const;

  Executable::State& x_;
  const CallOptions& options_;
  Diagnostics& diagnostics_;
  const Contract& contract_;
  uint8_t* const pointers_[2];
  Call call_;
  std::optional<Chunking> chunking_;
  RowPitch pitch_;          ///< of what ops address: the caller's buffers, or staging
  RowPitch callers_pitch_;  ///< of the caller's buffers
  CallFacts facts_;
  bool offered_[2] = {};             ///< staging that is new: nobody has mapped it before
  std::vector<RankPlaces>& places_;  ///< by rank; of ranks that are not addressed: as it was
};

bool Binder::check_size() {
  const DtypeInfo& type = info(options_.dtype);
  if (x_.parts > 0) call_.part_bytes = options_.bytes / x_.parts / type.bytes * type.bytes;
  call_.dtype = options_.dtype;
  call_.accumulate = options_.accumulate.value_or(type.accumulate);
  call_.reduce = options_.op;
  chunking_.emplace(contract_, call_.part_bytes, x_.plan->launch.align);
  if (call_.part_bytes * x_.parts != options_.bytes) {
    return refuse(
        diagnostics_, "message-size",
        fmt::format("{} bytes are not a message of {} elements for {} ranks; the next "
                    "smaller one has {}",
                    options_.bytes, type.name, contract_.ranks, call_.part_bytes * x_.parts));
  }
  if (options_.bytes > x_.options.max_bytes) {
    return refuse(diagnostics_, "over-capacity",
                  fmt::format("a message of {} bytes; the plan was loaded for {} at most: load it "
                              "with a larger max_bytes",
                              options_.bytes, x_.options.max_bytes));
  }
  return set_pitch();
}

// Rows of staging follow one another, whatever the pitch of the caller's.
bool Binder::set_pitch() {
  const uint64_t pitch = options_.row_pitch, part = call_.part_bytes;
  if (pitch == 0) return true;
  if (pitch < part || !x_.takes_pieces) {
    return refuse(
        diagnostics_, "message-size",
        fmt::format("rows of {} bytes cannot begin {} bytes apart: {}", part, pitch,
                    x_.takes_pieces ? "they would overlap" : "the plan takes no pieces of calls"));
  }
  const bool* const staged = x_.staged_rows;
  callers_pitch_ = RowPitch(contract_, part, pitch, pitch);
  pitch_ = RowPitch(contract_, part, staged[kInput] ? part : pitch, staged[kOutput] ? part : pitch);
  return true;
}

// Nothing to move, nothing to launch, as in NCCL. It must not count as a call either: ranks would
// not wait for one another's packets in it, and go further ahead than the plan's scratch allows.
bool Binder::empty() const {
  return options_.bytes == 0 && contract_.kind != CollectiveKind::barrier;
}

bool Binder::check_pointers() {
  for (const uint32_t side : {kInput, kOutput}) {
    if (pointers_[side] != nullptr || callers_bytes(side) == 0) continue;
    return refuse(diagnostics_, "no-buffer",
                  fmt::format("rank {} needs an {} of {} bytes", x_.rank, name_of(side),
                              callers_bytes(side)));
  }
  const uint64_t in_bytes = callers_bytes(kInput), out_bytes = callers_bytes(kOutput);
  facts_.placement = CallFacts::Placement::free;
  if (in_bytes == 0 || out_bytes == 0) return true;
  const auto in = reinterpret_cast<uintptr_t>(pointers_[kInput]);
  const auto out = reinterpret_cast<uintptr_t>(pointers_[kOutput]);
  const bool apart = in + in_bytes <= out || out + out_bytes <= in;
  const CallerBuffers callers =
      caller_buffers(contract_, *chunking_, x_.rank, true, callers_pitch_);
  const bool coincide =
      callers.shared && (callers.outer == kInput ? out - in : in - out) == callers.inner_offset;
  if (callers.shared) {
    facts_.placement = apart ? CallFacts::Placement::apart : CallFacts::Placement::in_place;
  }
  if (apart && contract_.in_place == InPlace::yes && callers.shared) {
    return refuse(diagnostics_, "out-of-place", "the plan is right in place only");
  }
  if (apart) return true;
  if (!coincide) {
    return refuse(diagnostics_, "overlap",
                  "input and output overlap, but not as they do in place for this collective");
  }
  if (contract_.in_place == InPlace::no) {
    return refuse(diagnostics_, "in-place", "the plan is not right in place");
  }
  return true;
}

void Binder::describe() {
  facts_.executable = x_.number;
  facts_.plan = x_.plan->name;
  facts_.bytes = options_.bytes;
  facts_.row_pitch = options_.row_pitch;
  facts_.dtype = facts_.accumulate = options_.dtype;
  if (!contract_.reduces()) return;
  facts_.reduce = call_.reduce;
  facts_.accumulate = call_.accumulate;
}

bool Binder::prepare() {
  if (x_.group->failure->report(diagnostics_) != nullptr) return false;
  if (!check_size() || !check_call(*x_.plan, x_.use, call_, diagnostics_) || !check_pointers()) {
    return false;
  }
  if (x_.use.sentinel && info(options_.dtype).bytes != x_.element) {
    return refuse(diagnostics_, "sentinel-width",
                  fmt::format("the plan's sentinel packets were set up for elements of {} bytes, "
                              "'{}' has {}: load the plan once more with this dtype",
                              x_.element, info(options_.dtype).name, info(options_.dtype).bytes));
  }
  describe();
  return patch();
}

// A program that is patched for this size already stays as it is.
bool Binder::patch() {
  const std::pair size{call_.part_bytes, options_.row_pitch};
  if (x_.patched_size == size) return true;
  x_.patched_size.reset();
  if (!patch_rank(x_.program, *x_.plan, x_.rank, *chunking_, x_.capacity, diagnostics_, pitch_)) {
    return false;
  }
  x_.patched_size = size;
  return true;
}

RankPlaces Binder::staged_places(uint32_t rank) const {
  RankPlaces places;
  if (!x_.stages(rank, kInput) && !x_.stages(rank, kOutput)) return places;
  const CallerBuffers callers =
      caller_buffers(contract_, *chunking_, rank, x_.access.together(rank));
  for (const uint32_t side : {kInput, kOutput}) {
    if (!x_.stages(rank, side)) continue;
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
  for (const auto& [number, buffer] : std::views::reverse(x_.group->buffers)) {
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

// Zero copy: where this rank's buffers lie, and new staging if they are not registered.
bool Binder::choose_places(std::vector<uint8_t>& message) {
  bool registered = true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (x_.stages(x_.rank, side) && !place_registered(side, registered)) return false;
  }
  if (!registered && options_.row_pitch != 0) {
    return refuse(diagnostics_, "message-size",
                  "rows that lie apart, of a plan that was loaded for zero copy, must lie in "
                  "registered buffers");
  }
  if (!registered) places_[x_.rank] = staged_places(x_.rank);
  encode(facts_, message);
  encode(places_[x_.rank], message);
  for (const uint32_t side : {kInput, kOutput}) {
    const bool wanted = !registered && x_.stages(x_.rank, side) && x_.staging[side] == nullptr;
    message.push_back(wanted ? 1 : 0);
    offered_[side] = wanted;
    if (wanted && !x_.offer_staging(side, message, diagnostics_)) return false;
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
  return mscclc::same_calls(calls, "bind", diagnostics_);
}

bool Binder::take_places(const std::vector<std::vector<uint8_t>>& messages) {
  for (uint32_t r = 0; r < messages.size(); ++r) {
    if (r == x_.rank) continue;
    std::span<const uint8_t> rest = messages[r];
    if (!decode(rest, places_[r])) {
      return refuse(diagnostics_, "bad-message", "a peer's message is no list of places");
    }
    for (const uint32_t side : {kInput, kOutput}) {
      if (rest.empty()) return refuse(diagnostics_, "bad-message", "a peer's message is cut off");
      const bool comes = rest[0] != 0;
      rest = rest.subspan(1);
      if (comes && !x_.map_staging(r, side, rest, diagnostics_)) return false;
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
  for (const Switches::Members& members : x_.switches.teams()) {
    for (const uint32_t side : {kInput, kOutput}) {
      const auto number = buffer_of(members, side);
      if (number && x_.group->joined.count({*number, members}) == 0) {
        found.emplace(*number, members);
      }
    }
  }
  return found;
}

// Collective: joins registered buffers at the plan's switches.
bool Binder::join_buffers() {
  Group& group = *x_.group;
  for (const auto& [number, members] : buffers_to_join()) {
    group.joined.emplace(number, members);
    const auto found = group.buffers.find(number);
    SwitchRegion region{nullptr, 0};
    if (found != group.buffers.end() && found->second->bytes > 0) {
      region = {found->second->address, found->second->bytes};
    }
    std::unique_ptr<SwitchTeam> team;
    if (!group.device->join_switch(*group.bootstrap, members, {region}, team, diagnostics_)) {
      return false;
    }
    if (found != group.buffers.end()) found->second->teams[members] = std::move(team);
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
    const auto found = x_.group->buffers.find(place.buffer);
    return found == x_.group->buffers.end() ? nullptr : mapped(found->second->peers);
  }
  if (place.kind != Kind::staging || place.buffer > kOutput) return nullptr;
  return rank == x_.rank ? x_.staging[place.buffer].get() : mapped(x_.peer_staging[place.buffer]);
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
  if (buffer >= kFirstScratch) return x_.connections[rank].scratch(buffer);
  return place_address(rank, buffer);
}

// The regions of Executable::State::join_switches(), and registered buffers.
std::optional<Switches::Spot> Binder::spot(uint32_t rank, uint32_t buffer) const {
  if (buffer >= kFirstScratch) {
    const PeerMemory& memory = x_.connections[rank];
    const auto* begin = reinterpret_cast<const uint8_t*>(memory.arrived(0));
    return Switches::Spot{0, static_cast<uint64_t>(memory.scratch(buffer) - begin)};
  }
  const BufferPlace& place = places_[rank].side[buffer];
  if (place.kind == Kind::registered) return Switches::Spot{place.buffer, place.offset, true};
  if (place.kind != Kind::staging || place.buffer > kOutput) return std::nullopt;
  return Switches::Spot{1 + place.buffer, place.offset};
}

const SwitchTeam* Binder::joined_team(uint64_t buffer, const Switches::Members& members) const {
  const auto found = x_.group->buffers.find(buffer);
  if (found == x_.group->buffers.end()) return nullptr;
  const auto team = found->second->teams.find(members);
  return team == found->second->teams.end() ? nullptr : team->second.get();
}

bool Binder::take_slot(BoundCall::State& made) {
  made.slot = nullptr;  // an old call's: its launch may not have run yet
  made.slot = x_.slots->take(diagnostics_);
  return made.slot != nullptr;
}

bool Binder::write_programs(BoundCall::State& made) {
  const RankProgram& program = x_.program;
  std::vector<device::BaseAddress>& bases = x_.bases;
  bases.clear();
  for (const device::Base& b : program.bases) {
    uint8_t* at = address(b.rank, b.buffer);
    if (at == nullptr && b.buffer < kFirstScratch && bytes(b.rank, b.buffer) > 0) {
      return refuse_place(b.rank, b.buffer);
    }
    bases.push_back({at, b.copy_stride, b.copies});
  }
  x_.switches.fill(
      program, [this](uint32_t rank, uint32_t buffer) { return spot(rank, buffer); },
      [this](uint64_t buffer, const Switches::Members& members) {
        return joined_team(buffer, members);
      },
      bases);
  return pack_programs(made, bases);
}

// Programs that are short enough travel with the launch, if the device takes them.
bool Binder::pack_programs(BoundCall::State& made, const std::vector<device::BaseAddress>& bases) {
  BlockPrograms::Places places = x_.where;
  places.bases = bases;
  places.ends = x_.ends;
  if (!made.programs.pack(x_.program, places, *x_.wait_slots)) return too_large(diagnostics_);
  made.launch.context = x_.contexts;
  made.launch.calls = x_.calls_ended;
  made.launch.call_counts = x_.wait_slots->per_block();
  made.launch.programs = made.programs.data();
  made.launch.program_bytes = made.programs.stride();
  made.launch.uses = made.programs.uses();
  made.launch.carried =
      x_.group->device->carries_programs() && made.programs.bytes() <= device::kMostCarried;
  if (made.launch.carried) {
    made.slot = nullptr;
    return true;
  }
  if (!take_slot(made)) return false;
  made.launch.programs = made.slot->data;
  return x_.group->device->write(made.slot->data, made.programs.data(), made.programs.bytes(),
                                 diagnostics_);
}

// A plan's own kernel reads no programs: what it does read takes their place.
bool Binder::place_lines(BoundCall::State& made) {
  if (made.own.kernel == nullptr || x_.own_kernels->bytes_in_memory() == 0) return true;
  if (made.slot == nullptr && !take_slot(made)) return false;
  made.own.lines_at = made.slot->data;
  return x_.group->device->write(made.slot->data, made.own.lines.data(),
                                 made.own.lines.size() * sizeof(SpecialLine), diagnostics_);
}

// By the programs as they are here: those in a slot lie on the device.
void Binder::shorten(BoundCall::State& made) const {
  if (!x_.group->device->carries_programs()) return;
  device::LaunchPlan here = made.launch;
  here.programs = made.programs.data();
  if (make_short(here, made.in_short)) made.launch.in_short = &made.in_short;
}

/// Bytes [begin, end) of staging, whose parts lie apart in the caller's buffer: out of it for the
/// input, into it for the output.
void Binder::copy_parts(uint32_t side, uint64_t begin, uint64_t end,
                        std::vector<StagingCopy>& to) const {
  const uint64_t part = call_.part_bytes;
  const uint64_t pitch = options_.row_pitch == 0 ? part : options_.row_pitch;
  uint8_t* const staging = place_address(x_.rank, side);
  for (uint64_t at = begin, next = 0; at < end; at = next) {
    next = pitch == part ? end : std::min(end, (at / part + 1) * part);
    uint8_t* const there = pointers_[side] + at / part * pitch + at % part;
    if (side == kInput) {
      to.push_back({staging + at, there, next - at});
    } else {
      to.push_back({there, staging + at, next - at});
    }
  }
}

// Of the output only what the collective promises is copied out: the rest is the caller's.
void Binder::plan_copies(BoundCall::State& made) const {
  const uint32_t rank = x_.rank;
  if (places_[rank].side[kInput].kind == Kind::staging) {
    copy_parts(kInput, 0, bytes(rank, kInput), made.before);
  }
  if (places_[rank].side[kOutput].kind != Kind::staging) return;
  for (const auto& run : x_.promised) {
    const uint64_t begin = chunking_->offset(Side::output, rank, run.first);
    const uint64_t end = chunking_->offset(Side::output, rank, run.end - 1) +
                         chunking_->length(Side::output, rank, run.end - 1);
    copy_parts(kOutput, begin, end, made.after);
  }
}

// Addresses, lengths and types may need another kernel than those that load() has asked about.
// Kernels of the plan's own are only chosen if they fit.
bool Binder::check_fit(BoundCall::State& made) {
  device::LaunchPlan& launch = made.launch;
  if (launch.blocks == 0 || made.own.kernel != nullptr) return true;
  const uint32_t in_short = launch.in_short != nullptr ? launch.in_short->operands : 0;
  const KernelKey key{launch.uses,       launch.program_bytes, launch.dtype,
                      launch.accumulate, launch.reduce,        in_short};
  auto known = x_.fitting.find(key);
  if (known == x_.fitting.end()) {
    const std::optional<uint32_t> most = x_.group->device->fits(launch, diagnostics_);
    if (!most) return false;
    known = x_.fitting.emplace(key, *most).first;
  }
  launch.most_blocks = known->second;
  return true;
}

/// A call to be filled; with the memory of an old one, if there is one to be had.
std::shared_ptr<BoundCall::State> Binder::blank() {
  std::shared_ptr<BoundCall::State> made = x_.collective_bind() ? nullptr : x_.calls.take();
  if (made == nullptr) made = std::make_shared<BoundCall::State>();
  made->executable = &x_;
  made->facts = facts_;
  made->launch = {};
  made->before.clear();
  made->after.clear();
  return made;
}

std::shared_ptr<BoundCall::State> Binder::make() {
  std::shared_ptr<BoundCall::State> made = blank();
  if (!write_programs(*made)) return nullptr;
  plan_copies(*made);
  made->bytes = options_.bytes;
  made->launch.blocks = empty() ? 0 : x_.plan->ranks[x_.rank].blocks;
  made->launch.threads = x_.plan->launch.threads;
  made->launch.early = options_.bytes <= kMostEarlyBytes && x_.group->device->launches_early();
  made->launch.behind_early = options_.behind_early;
  made->launch.dtype = call_.dtype;
  made->launch.accumulate = call_.accumulate;
  made->launch.reduce = call_.reduce;
  made->launch.contributions = call_.contributions;
  made->launch.ranks_here = x_.group->ranks_here;
  made->launch.patience =
      x_.group->timeout >= kForEver
          ? 0
          : static_cast<uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(x_.group->timeout).count());
  if (x_.own_kernels != nullptr) {
    x_.own_kernels->choose(made->programs, made->launch, made->own);
    if (!place_lines(*made)) return nullptr;
  }
  if (made->own.kernel == nullptr) shorten(*made);
  if (!check_fit(*made)) return nullptr;
  return made;
}

std::shared_ptr<BoundCall::State> Binder::run() {
  if (x_.collective_bind()) return options_.symmetric ? run_symmetric() : run_together();
  if (!prepare()) return nullptr;
  for (const uint32_t r : x_.addressed) places_[r] = staged_places(r);
  return make();
}

bool Binder::waits() {
  if (!x_.collective_bind() || !options_.symmetric) return x_.collective_bind();
  if (x_.switches.teams().empty()) return false;
  return prepare() && place_symmetric() && !buffers_to_join().empty();
}

/// This rank's places stand for those of all others. Of sides that only their own rank's ops touch
/// nobody asks.
bool Binder::place_symmetric() {
  const auto ranks = static_cast<uint32_t>(places_.size());
  places_.assign(ranks, {});
  for (const uint32_t side : {kInput, kOutput}) {
    bool staged = false, registered = true;
    for (uint32_t r = 0; r < ranks; ++r) staged = staged || x_.stages(r, side);
    if (!staged) continue;
    if (!place_registered(side, registered)) return false;
    const BufferPlace own = places_[x_.rank].side[side];
    if (!registered) {
      return refuse(diagnostics_, "outside-buffer",
                    fmt::format("the {} of rank {} does not lie in one registered buffer",
                                name_of(side), x_.rank));
    }
    facts_.symmetric.side[side] = own;
    for (uint32_t r = 0; r < ranks; ++r) {
      places_[r].side[side] = x_.stages(r, side) ? own : BufferPlace{};
    }
  }
  return true;
}

// Joining at a switch is for all ranks together, and so is the call that is the first to need it.
std::shared_ptr<BoundCall::State> Binder::run_symmetric() {
  if (!prepare() || !place_symmetric()) return nullptr;
  if (!buffers_to_join().empty()) return run_together();
  return make();
}

// Staging that not all ranks have taken is offered again by the next call that needs it.
std::shared_ptr<BoundCall::State> Binder::run_together() {
  facts_.number = ++x_.binds;
  auto made = try_together();
  for (const uint32_t side : {kInput, kOutput}) {
    if (made == nullptr && offered_[side]) x_.staging[side].reset();
  }
  return made;
}

// Collective: no rank is left with a call that another cannot make.
std::shared_ptr<BoundCall::State> Binder::try_together() {
  Group& group = *x_.group;
  std::vector<std::vector<uint8_t>> messages;
  if (!exchange_places(prepare(), messages) || !same_calls(messages)) return nullptr;
  bool able = take_places(messages);
  if (!x_.switches.teams().empty()) {  // joining is for all or nobody
    if (!group.agree(able, "bind a call", diagnostics_)) return nullptr;
    able = join_buffers();
  }
  std::shared_ptr<BoundCall::State> made = able ? make() : nullptr;
  return group.agree(made != nullptr, "bind a call", diagnostics_) ? made : nullptr;
}

bool BoundCall::has_own_kernel() const { return state_->own.kernel != nullptr; }

std::shared_ptr<BoundCall::State> Executable::State::bind(const CallOptions& call,
                                                          Diagnostics& diagnostics) {
  if (collective_bind()) return Binder(*this, call, diagnostics).run();
  if (!group->failure->happened()) {
    if (auto known = calls.find(call); known != nullptr) return known;
  }
  auto made = Binder(*this, call, diagnostics).run();
  if (made != nullptr) calls.keep(call, made);
  return made;
}

bool Executable::State::bind_waits(const CallOptions& call) {
  Diagnostics ignored;  // bind() reports it
  return Binder(*this, call, ignored).waits();
}

}  // namespace mscclc
