// Fitting a plan to a call: which bytes its ops move, where the caller's buffers of all ranks lie.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/executable.h"

namespace mscclc {
namespace {

using Kind = BufferPlace::Kind;

bool refuse(Diagnostics& diagnostics, const char* code, const std::string& text) {
  diagnostics.error(code, {}, text);
  return false;
}

Side side_of(uint32_t side) { return side == kInput ? Side::input : Side::output; }
const char* name_of(uint32_t side) { return side == kInput ? "input" : "output"; }

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
                  static_cast<uint8_t*>(options.output)} {}

  std::shared_ptr<BoundCall::State> run();

 private:
  bool prepare();
  bool check_size();
  bool empty() const;
  bool check_pointers();
  bool choose_places(std::vector<uint8_t>& message);
  bool place_registered(uint32_t side);
  RankPlaces staged_places(uint32_t rank) const;
  bool take_places(const std::vector<std::vector<uint8_t>>& messages);
  bool collect_places(bool able);
  uint8_t* address(uint32_t rank, uint32_t buffer);
  std::optional<Switches::Spot> spot(uint32_t rank, uint32_t buffer) const;
  uint8_t* place_address(uint32_t rank, uint32_t side) const;
  bool write_slot(BoundCall::State& made);
  bool pack_programs(BoundCall::State& made, const std::vector<device::BaseAddress>& bases);
  void plan_copies(BoundCall::State& made) const;
  uint64_t bytes(uint32_t rank, uint32_t side) const {
    return chunking_->buffer_bytes(side_of(side), rank);
  }

  Executable::State& x_;
  const CallOptions& options_;
  Diagnostics& diagnostics_;
  const Contract& contract_;
  uint8_t* const pointers_[2];
  Call call_;
  std::optional<Chunking> chunking_;
  std::vector<RankPlaces> places_;  ///< by rank
};

bool Binder::check_size() {
  const DtypeInfo& type = info(options_.dtype);
  call_.part_bytes = Chunking::part_for_message(contract_, options_.bytes, type.bytes);
  call_.dtype = options_.dtype;
  call_.accumulate = options_.accumulate.value_or(type.accumulate);
  call_.reduce = options_.op;
  chunking_.emplace(contract_, call_.part_bytes, x_.plan->launch.align);
  if (chunking_->message_bytes() != options_.bytes) {
    return refuse(
        diagnostics_, "message-size",
        fmt::format("{} bytes are not a message of {} elements for {} ranks; the next "
                    "smaller one has {}",
                    options_.bytes, type.name, contract_.ranks, chunking_->message_bytes()));
  }
  if (options_.bytes > x_.options.max_bytes) {
    return refuse(diagnostics_, "over-capacity",
                  fmt::format("a message of {} bytes; the plan was loaded for {} at most: load it "
                              "with a larger max_bytes",
                              options_.bytes, x_.options.max_bytes));
  }
  return true;
}

// Nothing to move, nothing to launch, as in NCCL. It must not count as a call either: ranks would
// not wait for one another's packets in it, and go further ahead than the plan's scratch allows.
bool Binder::empty() const {
  return options_.bytes == 0 && contract_.kind != CollectiveKind::barrier;
}

bool Binder::check_pointers() {
  for (const uint32_t side : {kInput, kOutput}) {
    if (pointers_[side] != nullptr || bytes(x_.rank, side) == 0) continue;
    return refuse(diagnostics_, "no-buffer",
                  fmt::format("rank {} needs an {} of {} bytes", x_.rank, name_of(side),
                              bytes(x_.rank, side)));
  }
  const uint64_t in_bytes = bytes(x_.rank, kInput), out_bytes = bytes(x_.rank, kOutput);
  if (in_bytes == 0 || out_bytes == 0) return true;
  const auto in = reinterpret_cast<uintptr_t>(pointers_[kInput]);
  const auto out = reinterpret_cast<uintptr_t>(pointers_[kOutput]);
  const bool apart = in + in_bytes <= out || out + out_bytes <= in;
  const CallerBuffers callers = caller_buffers(contract_, *chunking_, x_.rank, true);
  const bool coincide =
      callers.shared && (callers.outer == kInput ? out - in : in - out) == callers.inner_offset;
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

bool Binder::prepare() {
  if (x_.group->failure->report(diagnostics_) != nullptr) return false;
  if (!check_size() || !check_call(*x_.plan, call_, diagnostics_) || !check_pointers()) {
    return false;
  }
  const bool sentinel =
      std::any_of(x_.program.buffers.begin(), x_.program.buffers.end(),
                  [](const BufferLayout& b) { return b.packets == PacketFormat::sentinel; });
  if (sentinel && info(options_.dtype).bytes != x_.element) {
    return refuse(diagnostics_, "sentinel-width",
                  fmt::format("the plan's sentinel packets were set up for elements of {} bytes, "
                              "'{}' has {}: load the plan once more with this dtype",
                              x_.element, info(options_.dtype).name, info(options_.dtype).bytes));
  }
  return patch_rank(x_.program, *x_.plan, x_.rank, *chunking_, x_.capacity, diagnostics_);
}

RankPlaces Binder::staged_places(uint32_t rank) const {
  RankPlaces places;
  const CallerBuffers callers = caller_buffers(contract_, *chunking_, rank, x_.together(rank));
  for (const uint32_t side : {kInput, kOutput}) {
    if (!x_.stages(rank, side)) continue;
    places.side[side] = {Kind::staging, side, 0};
    if (!callers.shared) continue;
    places.side[side] = {Kind::staging, callers.outer,
                         side == callers.outer ? 0 : callers.inner_offset};
  }
  return places;
}

bool Binder::place_registered(uint32_t side) {
  const uint64_t needed = bytes(x_.rank, side);
  for (const auto& [number, buffer] : x_.group->buffers) {
    const uint8_t* at = pointers_[side];
    if (at < buffer->address || at >= buffer->address + buffer->bytes) continue;
    const auto offset = static_cast<uint64_t>(at - buffer->address);
    if (needed > buffer->bytes - offset) continue;
    places_[x_.rank].side[side] = {Kind::registered, number, offset};
    return true;
  }
  return needed == 0;
}

// Zero copy: where this rank's buffers lie, and new staging if they are not registered.
bool Binder::choose_places(std::vector<uint8_t>& message) {
  bool registered = true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (x_.stages(x_.rank, side)) registered &= place_registered(side);
  }
  if (!registered) places_[x_.rank] = staged_places(x_.rank);
  encode(places_[x_.rank], message);
  for (const uint32_t side : {kInput, kOutput}) {
    const bool wanted = !registered && x_.stages(x_.rank, side) && x_.staging[side] == nullptr;
    message.push_back(wanted ? 1 : 0);
    if (wanted && !x_.offer_staging(side, message, diagnostics_)) return false;
  }
  return true;
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

// Collective if it is zero copy. False: some rank cannot make this call.
bool Binder::collect_places(bool able) {
  places_.resize(x_.group->size());
  if (!x_.collective_bind()) {
    for (uint32_t r = 0; r < places_.size(); ++r) places_[r] = staged_places(r);
    return able;
  }
  std::vector<uint8_t> message;
  able = able && choose_places(message);
  std::vector<std::vector<uint8_t>> messages;
  return x_.group->exchange(able, message, "bind a call", messages, diagnostics_) &&
         take_places(messages);
}

uint8_t* Binder::place_address(uint32_t rank, uint32_t side) const {
  const BufferPlace& place = places_[rank].side[side];
  const bool own = rank == x_.rank;
  switch (place.kind) {
    case Kind::own:
      return own ? pointers_[side] : nullptr;
    case Kind::registered: {
      if (own) return pointers_[side];
      const auto found = x_.group->buffers.find(place.buffer);
      if (found == x_.group->buffers.end() || rank >= found->second->peers.size()) return nullptr;
      const Memory* memory = found->second->peers[rank].get();
      if (memory == nullptr || place.offset > memory->bytes() ||
          bytes(rank, side) > memory->bytes() - place.offset) {
        return nullptr;
      }
      return memory->data() + place.offset;
    }
    case Kind::staging: {
      if (place.buffer > kOutput) return nullptr;
      const auto& peers = x_.peer_staging[place.buffer];
      const Memory* memory = own                   ? x_.staging[place.buffer].get()
                             : rank < peers.size() ? peers[rank].get()
                                                   : nullptr;
      if (memory == nullptr || place.offset > memory->bytes() ||
          bytes(rank, side) > memory->bytes() - place.offset) {
        return nullptr;
      }
      return memory->data() + place.offset;
    }
  }
  return nullptr;
}

uint8_t* Binder::address(uint32_t rank, uint32_t buffer) {
  if (buffer >= kFirstScratch) return x_.connections[rank].scratch(buffer);
  return place_address(rank, buffer);
}

// The regions of Executable::State::join_switches().
std::optional<Switches::Spot> Binder::spot(uint32_t rank, uint32_t buffer) const {
  if (buffer >= kFirstScratch) {
    const PeerMemory& memory = x_.connections[rank];
    const auto* begin = reinterpret_cast<const uint8_t*>(memory.arrived(0));
    return Switches::Spot{0, static_cast<uint64_t>(memory.scratch(buffer) - begin)};
  }
  const BufferPlace& place = places_[rank].side[buffer];
  if (place.kind != Kind::staging || place.buffer > kOutput) return std::nullopt;
  return Switches::Spot{1 + place.buffer, place.offset};
}

bool Binder::write_slot(BoundCall::State& made) {
  const RankProgram& program = x_.program;
  std::vector<device::BaseAddress> bases;
  bases.reserve(program.bases.size());
  for (const device::Base& b : program.bases) {
    uint8_t* at = address(b.rank, b.buffer);
    if (at == nullptr && b.buffer < kFirstScratch && bytes(b.rank, b.buffer) > 0) {
      return refuse(diagnostics_, "not-mapped",
                    fmt::format("the {} of rank {} is not mapped here: its registered buffer has "
                                "been destroyed on this rank",
                                name_of(b.buffer), b.rank));
    }
    bases.push_back({at, b.copy_stride, b.copies});
  }
  x_.switches.fill(
      program, [this](uint32_t rank, uint32_t buffer) { return spot(rank, buffer); }, bases);
  if (x_.group->device->takes_programs()) return pack_programs(made, bases);
  made.slot = x_.slots->take(diagnostics_);
  if (made.slot == nullptr) return false;
  Image image(made.slot.get(), x_.slots->slot_bytes());
  device::RankContext context = x_.context;
  // The context stands first: it says where the rest lies.
  const uint8_t* rest = made.slot.get() + Image::bytes_of<device::RankContext>(1);
  Image parts(const_cast<uint8_t*>(rest),
              x_.slots->slot_bytes() - Image::bytes_of<device::RankContext>(1));
  context.view.moves = parts.add(program.moves);
  context.view.runs = parts.add(program.runs);
  context.view.offsets = parts.add(program.offsets);
  context.view.loops = parts.add(program.loops);
  context.bases = parts.add(bases);
  made.launch.contexts = image.add(std::span<const device::RankContext>(&context, 1));
  return image.write(*x_.group->device, diagnostics_) &&
         parts.write(*x_.group->device, diagnostics_);
}

// Programs that are short enough travel with the launch.
bool Binder::pack_programs(BoundCall::State& made, const std::vector<device::BaseAddress>& bases) {
  if (!made.programs.pack(x_.program, bases, x_.ends)) {
    return refuse(diagnostics_, "too-large", "the program of a thread block would have 2 GiB");
  }
  made.context = x_.context;
  made.launch.one = &made.context;
  made.launch.programs = made.programs.data();
  made.launch.program_bytes = made.programs.stride();
  made.launch.uses = made.programs.uses();
  made.launch.carried = made.programs.bytes() <= device::kMostCarried;
  if (made.launch.carried) return true;
  made.slot = x_.slots->take(diagnostics_);
  if (made.slot == nullptr) return false;
  made.launch.programs = made.slot.get();
  return x_.group->device->write(made.slot.get(), made.programs.data(), made.programs.bytes(),
                                 diagnostics_);
}

// Of the output only what the collective promises is copied out: the rest is the caller's.
void Binder::plan_copies(BoundCall::State& made) const {
  const uint32_t rank = x_.rank;
  if (places_[rank].side[kInput].kind == Kind::staging && bytes(rank, kInput) > 0) {
    made.before.push_back({place_address(rank, kInput), pointers_[kInput], bytes(rank, kInput)});
  }
  if (places_[rank].side[kOutput].kind != Kind::staging) return;
  const uint32_t chunks = contract_.shape(Side::output, rank).chunks();
  Promise promise;
  for (uint32_t c = 0; c < chunks; ++c) {
    const uint64_t length = chunking_->length(Side::output, rank, c);
    if (length == 0 || !contract_.promise(rank, c, promise)) continue;
    const uint64_t offset = chunking_->offset(Side::output, rank, c);
    uint8_t* to = pointers_[kOutput] + offset;
    if (!made.after.empty() &&
        static_cast<uint8_t*>(made.after.back().to) + made.after.back().bytes == to) {
      made.after.back().bytes += length;
    } else {
      made.after.push_back({to, place_address(rank, kOutput) + offset, length});
    }
  }
}

std::shared_ptr<BoundCall::State> Binder::run() {
  if (!collect_places(prepare())) return nullptr;
  auto made = std::make_shared<BoundCall::State>();
  made->executable = &x_;
  if (!write_slot(*made)) return nullptr;
  plan_copies(*made);
  made->launch.blocks = empty() ? 0 : x_.context.blocks;
  made->launch.threads = x_.plan->launch.threads;
  made->launch.dtype = call_.dtype;
  made->launch.accumulate = call_.accumulate;
  made->launch.reduce = call_.reduce;
  made->launch.contributions = call_.contributions;
  made->launch.patience = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(x_.group->timeout).count());
  return made;
}

std::shared_ptr<BoundCall::State> Executable::State::bind(const CallOptions& call,
                                                          Diagnostics& diagnostics) {
  return Binder(*this, call, diagnostics).run();
}

}  // namespace mscclc
