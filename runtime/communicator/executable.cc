#include "runtime/communicator/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/early_launch.h"
#include "ir/verify/verify.h"
#include "runtime/base/bytes.h"
#include "runtime/base/environment.h"
#include "runtime/communicator/refuse.h"
#include "runtime/device/links.h"
#include "runtime/memory/handle.h"
#include "runtime/observe/log.h"
#include "runtime/proofs/check_proof.h"
#include "runtime/proofs/policy.h"

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

std::string options_text(const Executable::State::Loaded& loaded) {
  return fmt::format("for {} bytes at most, elements of {} bytes{}", loaded.max_bytes,
                     loaded.element, loaded.zero_copy ? ", zero copy" : "");
}

constexpr size_t kMostCallText = 512;

bool refuse_calls(const std::string& first, uint32_t rank, const std::string& other,
                  Diagnostics& diagnostics) {
  diagnostics
      .error("call-differs", {},
             fmt::format("ranks make different calls: rank 0 makes {}; rank {} makes {}", first,
                         rank, other))
      .notes.push_back({.text = "all ranks must make the same calls, in the same order"});
  return false;
}

uint32_t blocks_of(const Program& plan, uint32_t rank) { return plan.ranks[rank].blocks; }

}  // namespace

bool too_large(Diagnostics& diagnostics) {
  return refuse(diagnostics, "too-large", "the program of a thread block would have 2 GiB");
}

Executable::State::State(std::shared_ptr<Group> group, std::shared_ptr<const Program> plan,
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
               this->plan->launch.align),
      use(use_of(*this->plan)),
      parts(Chunking::parts_of_message(this->plan->contract)),
      number(++this->group->loads) {}

Executable::State::~State() { proxy.reset(); }

bool Executable::State::check_plan(Diagnostics& diagnostics) {
  if (plan->contract.kind == CollectiveKind::none) {
    return refuse(diagnostics, "no-contract", "the plan does not say which collective it is");
  }
  if (!plan->split) {
    return refuse(diagnostics, "not-split",
                  "the program is no plan yet: compile it with the pass 'split'");
  }
  const Environment environment = Environment::of_process();
  const auto policy = proof_policy(options.proof, environment, diagnostics);
  const auto digest = policy ? plan_digest(plan, diagnostics) : std::nullopt;
  if (!digest) return false;
  hash_ = hex(*digest);
  if (*policy == ProofPolicy::require) {
    if (!check_proof(*plan, *digest, environment, diagnostics)) return false;
    scratch_in_call_ = options.in_turn && keeps_scratch_in_call(*plan, *digest);
    return true;
  }
  warn_of_skipped(mscclc::quoted(plan->name), rank, diagnostics);
  return true;
}

// Asks about the kernels that may run, with the memory that programs take: of all types, as they
// add up by default. Other calls ask when they are bound.
bool Executable::State::check_fit(Diagnostics& diagnostics) const {
  device::LaunchPlan like;
  like.blocks = blocks_of(*plan, rank);
  like.threads = plan->launch.threads;
  if (like.blocks == 0) return true;
  BlockPrograms programs;
  const std::vector<device::BaseAddress> bases(program.bases.size());
  std::vector<device::ChannelEnd> ends(plan->ranks[rank].channels.size());
  for (uint32_t c = 0; c < ends.size(); ++c) ends[c].port = goes_by_proxy(c) ? 1 : 0;
  if (!programs.pack(program, {bases, ends}, *wait_slots)) return too_large(diagnostics);
  like.programs = programs.data();
  like.program_bytes = static_cast<uint32_t>(BlockPrograms::most_bytes(program) / like.blocks);
  like.uses = programs.uses();
  like.ranks_here = group->ranks_here;
  return std::all_of(dtype_table().begin(), dtype_table().end(), [&](const DtypeInfo& type) {
    like.dtype = type.dtype;
    like.accumulate = type.accumulate;
    return group->device->fits(like, diagnostics).has_value();
  });
}

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
  return Image::bytes_of<device::RankContext>(1) +
         Image::bytes_of<device::ChannelEnd>(own.channels.size()) +
         Image::bytes_of<uint64_t>(own.semaphores.size()) +
         Image::bytes_of<device::Barrier>(program.barriers.size()) + Image::bytes_of<uint64_t>(1) +
         Image::bytes_of<uint64_t>(counts());
}

/// Counts that all blocks keep from call to call.
uint64_t Executable::State::counts() const {
  return uint64_t{blocks_of(*plan, rank)} * wait_slots->per_block();
}

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

bool Executable::State::allocate(Diagnostics& diagnostics) {
  Device& device = *group->device;
  if (!take_region(diagnostics)) return false;
  const PoolPiece own =
      group->own_memory->take(device, memory_bytes(), "a plan's program", diagnostics);
  if (!own) return false;
  memory = own.memory();
  faults = device.allocate_visible(blocks_of(*plan, rank) * sizeof(device::Fault),
                                   "reports of thread blocks", diagnostics);
  const auto source = [pool = group->own_memory, of = group->device](uint64_t bytes,
                                                                     Diagnostics& problems) {
    const PoolPiece piece = pool->take(*of, bytes, "programs of calls", problems);
    return piece ? piece.memory() : nullptr;
  };
  const uint64_t lines = own_kernels == nullptr ? 0 : own_kernels->bytes_in_memory();
  slots = std::make_shared<SlotPool>(group->device,
                                     std::max(BlockPrograms::most_bytes(program), lines), source);
  return faults != nullptr;
}

// What bind() would find out each time.
void Executable::State::prepare_binds() {
  const Contract& contract = plan->contract;
  const uint32_t chunks = contract.chunk_count(Side::output, rank);
  Promise promise;
  for (uint32_t c = 0; c < chunks; ++c) {
    if (!contract.promise(rank, c, promise)) continue;
    if (promised.empty() || promised.back().end != c) promised.push_back({c, c});
    promised.back().end = c + 1;
  }
  addressed = {rank};
  for (const device::Base& base : program.bases) {
    if (base.buffer < kFirstScratch) addressed.push_back(base.rank);
  }
  std::sort(addressed.begin(), addressed.end());
  addressed.erase(std::unique(addressed.begin(), addressed.end()), addressed.end());
  places.resize(group->size());
}

// A plan without kernels of its own is none the worse for it, so that nothing here is an error.
void Executable::State::load_own_kernels() {
  if (options.plan_file.empty() || blocks_of(*plan, rank) == 0) return;
  std::string why;
  own_kernels = OwnKernels::load(*plan, rank, hash_, options.plan_file, *group->device, why);
  log(LogLevel::info, LogArea::load, rank,
      own_kernels != nullptr
          ? fmt::format("executable {} has kernels of its own: '{}'", number, own_kernels->file())
          : fmt::format("the interpreter runs executable {}: {}", number, why));
}

bool Executable::State::prepare(Diagnostics& diagnostics) {
  if (!check_plan(diagnostics) || !lower_rank(*plan, rank, program, diagnostics)) {
    return false;
  }
  if (!check_links(*plan, rank, group->links, diagnostics)) return false;
  if (group->device->launches_early()) mark_early_launch(*plan, rank, program);
  wait_slots.emplace(program);
  if (!check_fit(diagnostics)) return false;
  load_own_kernels();
  prepare_binds();
  return lay_out(diagnostics) && allocate(diagnostics);
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

// What ranks must agree on, then what they need of each other.
bool Executable::State::describe(std::vector<uint8_t>& message, Diagnostics& diagnostics) {
  const std::string_view call = std::string_view(options.call).substr(0, kMostCallText);
  ByteWriter(message)
      .number(static_cast<uint32_t>(call.size()))
      .text(call)
      .text(hash_)
      .number(options.max_bytes)
      .number(element)
      .number(static_cast<uint8_t>(options.zero_copy));
  if (!await_lanes(message, diagnostics)) return false;
  ByteWriter(message).number<uint8_t>(scratch_ ? 1 : 0);
  if (!region_.encode(*group->device, message, diagnostics)) return false;
  if (scratch_ && !scratch_.encode(*group->device, message, diagnostics)) return false;
  if (options.zero_copy) return true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (stages(rank, side) && !offer_staging(side, message, diagnostics)) return false;
  }
  return true;
}

bool Executable::State::read_loaded(ByteReader& message, Loaded& loaded,
                                    Diagnostics& diagnostics) const {
  loaded.call = message.text(message.number<uint32_t>());
  loaded.hash = message.text(hash_.size());
  loaded.max_bytes = message.number<uint64_t>();
  loaded.element = message.number<uint32_t>();
  loaded.zero_copy = message.number<uint8_t>() != 0;
  return message.good() || refuse(diagnostics, "bad-message", "a peer's message is cut off");
}

// All ranks compare the same messages: they all go on, or none does, and nobody has to be told.
bool Executable::State::same_plans(const std::vector<std::vector<uint8_t>>& messages,
                                   Diagnostics& diagnostics) const {
  Loaded first;
  for (uint32_t r = 0; r < messages.size(); ++r) {
    ByteReader reader(messages[r]);
    Loaded loaded;
    if (!read_loaded(reader, loaded, diagnostics)) return false;
    if (r == 0) first = loaded;
    if (loaded == first) continue;
    if (loaded.call != first.call) return refuse_calls(first.call, r, loaded.call, diagnostics);
    if (loaded.hash != first.hash) {
      return refuse(diagnostics, "plan-differs",
                    fmt::format("ranks load different plans: the hash of rank 0's is {}, that of "
                                "rank {}'s {}",
                                first.hash, r, loaded.hash));
    }
    return refuse(diagnostics, "options-differ",
                  fmt::format("ranks load the plan differently: rank 0 {}, rank {} {}",
                              options_text(first), r, options_text(loaded)));
  }
  return true;
}

bool Executable::State::connect_peer(uint32_t peer, std::span<const uint8_t> message,
                                     Diagnostics& diagnostics) {
  ByteReader reader(message);
  Loaded loaded;
  if (!read_loaded(reader, loaded, diagnostics)) return false;
  if (!take_lane_offer(peer, reader, diagnostics)) return false;
  const bool apart = reader.number<uint8_t>() != 0;
  if (!reader.good()) return refuse(diagnostics, "bad-message", "a peer's message is cut off");
  std::span<const uint8_t> rest = reader.rest();
  if (!map_region(peer, apart, rest, diagnostics)) return false;
  if (options.zero_copy) return true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (stages(peer, side) && !map_staging(peer, side, rest, diagnostics)) return false;
  }
  return true;
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

bool Executable::State::connect(const std::vector<std::vector<uint8_t>>& messages,
                                Diagnostics& diagnostics) {
  for (uint32_t r = 0; r < messages.size(); ++r) {
    if (r != rank && !connect_peer(r, messages[r], diagnostics)) return false;
  }
  return true;
}

bool Executable::State::goes_by_proxy(uint32_t channel) const {
  const Channel& c = plan->ranks[rank].channels[channel];
  return c.kind == ChannelKind::port || needs_stored_signals(c, group->links);
}

std::vector<device::ChannelEnd> Executable::State::channel_ends() const {
  std::vector<device::ChannelEnd> ends;
  const std::vector<Channel>& channels = plan->ranks[rank].channels;
  for (uint32_t c = 0; c < channels.size(); ++c) {
    const Channel& channel = channels[c];
    uint64_t* partner =
        channel.partner == kNone ? nullptr : connections[channel.peer].arrived(channel.partner);
    ends.push_back({connections[rank].arrived(c), partner, 0,
                    static_cast<uint64_t>(goes_by_proxy(c) ? 1 : 0)});
  }
  return ends;
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

bool Executable::State::proxy_sends_from(uint32_t from) const {
  const std::vector<Channel>& channels = plan->ranks[from].channels;
  return std::any_of(channels.begin(), channels.end(), [&](Channel c) {
    if (c.peer != rank) return false;
    c.peer = from;  // links are as seen from here
    return c.kind == ChannelKind::port || needs_stored_signals(c, group->links);
  });
}

LanePeer Executable::State::lane_peer(uint32_t peer) const {
  LanePeer to{.rank = peer, .link = group->links[peer], .failed = fail_group()};
  to.over = [failure = group->failure] { return failure->happened(); };
  if (peer < lane_offers_.size()) to.offer = lane_offers_[peer];
  return to;
}

LaneFailed Executable::State::fail_group() const {
  return [weak = std::weak_ptr<Group>(group)](const std::string& why) {
    if (const auto held = weak.lock()) held->fail("proxy", why);
  };
}

// Every rank tells each of those that send to it what their lanes need to know.
bool Executable::State::await_lanes(std::vector<uint8_t>& message, Diagnostics& diagnostics) {
  std::vector<uint32_t> senders;
  for (uint32_t r = 0; r < group->size(); ++r) {
    if (r != rank && proxy_sends_from(r)) senders.push_back(r);
  }
  ByteWriter writer(message);
  writer.number(static_cast<uint32_t>(senders.size()));
  for (const uint32_t sender : senders) {
    auto end = group->device->await_lane(lane_peer(sender), diagnostics);
    if (end == nullptr) return false;
    writer.number(sender).number(static_cast<uint32_t>(end->offer().size())).bytes(end->offer());
    lane_ends.push_back(std::move(end));
  }
  return true;
}

bool Executable::State::take_lane_offer(uint32_t peer, ByteReader& message,
                                        Diagnostics& diagnostics) {
  lane_offers_.resize(group->size());
  const auto offers = message.number<uint32_t>();
  for (uint32_t i = 0; i < offers && message.good(); ++i) {
    const auto sender = message.number<uint32_t>();
    const auto offer = message.bytes(message.number<uint32_t>());
    if (sender == rank) lane_offers_[peer].assign(offer.begin(), offer.end());
  }
  return message.good() || refuse(diagnostics, "bad-message", "a peer's message is cut off");
}

bool Executable::State::open_lanes(Proxy::Ports& ports, Diagnostics& diagnostics) {
  ports.lanes.resize(group->size());
  for (const Proxy::Port& port : ports.channels) {
    if (!port.used || ports.lanes[port.peer] != nullptr) continue;
    ports.lanes[port.peer] = group->device->open_lane(lane_peer(port.peer), diagnostics);
    if (ports.lanes[port.peer] == nullptr) return false;
  }
  return true;
}

bool Executable::State::start_proxy(Diagnostics& diagnostics) {
  Proxy::Ports ports{{}, {}, group->regions};
  bool any = false;
  const std::vector<device::ChannelEnd> ends = channel_ends();
  for (uint32_t c = 0; c < ends.size(); ++c) {
    const Channel& channel = plan->ranks[rank].channels[c];
    any |= ends[c].port != 0;
    ports.channels.push_back({ends[c].port != 0, channel.peer, ends[c].partner});
  }
  if (!any) return true;
  // The processor sets them, too.
  flushed = group->device->allocate_visible(ends.size() * sizeof(uint64_t), "counts of flushes",
                                            diagnostics);
  if (flushed == nullptr || !open_lanes(ports, diagnostics)) return false;
  context.queue.flushed = reinterpret_cast<uint64_t*>(flushed->data());
  proxy = Proxy::start(group->device, std::move(ports), context.queue.claimed,
                       context.queue.flushed, fail_group(), diagnostics);
  if (proxy == nullptr) return false;
  context.queue = proxy->queue();
  log(LogLevel::info, LogArea::proxy, rank,
      fmt::format("executable {} has a proxy for its port channels, and for signals where peers "
                  "take no atomics",
                  number));
  return true;
}

bool Executable::State::write_program(Diagnostics& diagnostics) {
  Image image(memory->data(), memory_bytes());
  std::vector<uint64_t> semaphores;
  for (const Semaphore& s : plan->ranks[rank].semaphores) semaphores.push_back(s.initial);
  std::vector<device::Barrier> barriers;
  for (const BarrierMembers& b : program.barriers) barriers.push_back({0, b.blocks.size()});
  const std::vector<uint64_t> zero(1, 0);
  contexts = image.add(std::span<const device::RankContext>(&context, 1));
  ends = channel_ends();
  context.channels = image.add(ends);
  where.semaphores = image.add(semaphores);
  where.barriers = image.add(barriers);
  calls_ended = image.add(std::vector<uint64_t>(counts()));
  context.queue.claimed = image.add(zero);
  context.faults = reinterpret_cast<device::Fault*>(faults->data());
  context.abort = group->failure->word();
  return image.write(*group->device, diagnostics);
}

bool Executable::State::load(Diagnostics& diagnostics) {
  std::vector<uint8_t> message;
  const bool able = prepare(diagnostics) && describe(message, diagnostics);
  std::vector<std::vector<uint8_t>> messages;
  if (!group->exchange(able, message, "load a plan", messages, diagnostics) ||
      !same_plans(messages, diagnostics)) {
    return false;
  }
  const bool connected = connect(messages, diagnostics) && write_program(diagnostics) &&
                         start_proxy(diagnostics) &&
                         group->device->write(contexts, &context, sizeof context, diagnostics);
  if (!group->agree(connected, "map the memory of the other ranks", diagnostics)) return false;
  group->recorder.loaded(number, {plan->name, hash_, plan->contract.kind});
  log(LogLevel::info, LogArea::load, rank,
      fmt::format("executable {} is '{}', for {} bytes at most{}; its hash is {}", number,
                  plan->name, options.max_bytes, options.zero_copy ? ", zero copy" : "", hash_));
  return join_switches(diagnostics);
}

// Regions: 0 the plan's, 1 and 2 staging by side.
bool Executable::State::join_switches(Diagnostics& diagnostics) {
  std::vector<SwitchRegion> regions = {{connections[rank].arrived(0), layouts_[rank]->bytes()}};
  for (const std::shared_ptr<Memory>& memory : staging) {
    regions.push_back(memory == nullptr ? SwitchRegion{nullptr, 0}
                                        : SwitchRegion{memory->data(), memory->bytes()});
  }
  return switches.join(
      *plan, rank, program,
      [&](const std::vector<uint32_t>& members, std::unique_ptr<SwitchTeam>& team) {
        return group->device->join_switch(*group->bootstrap, members, regions, team, diagnostics);
      });
}

// Collective: all ranks learn of a call that is another one on some rank, and none launches it.
bool Executable::State::same_launch(const CallFacts& facts, Diagnostics& diagnostics) const {
  CallFacts own = facts;
  own.number = ++group->checked_launches;
  std::vector<uint8_t> message;
  encode(own, message);
  std::vector<std::vector<uint8_t>> messages;
  if (!group->exchange(true, message, "launch a call", messages, diagnostics)) return false;
  std::vector<CallFacts> calls(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) {
    std::span<const uint8_t> rest = messages[r];
    if (decode(rest, calls[r]) && rest.empty()) continue;
    return refuse(diagnostics, "bad-message", "a peer's message does not describe its call");
  }
  return same_calls(calls, "launch", diagnostics);
}

// Costs a launch a few stores.
void Executable::State::note_launch(const BoundCall::State& binding, StreamHandle stream) {
  group->launched(stream);
  const FlightCall call{.executable = number,
                        .call = ++launches,
                        .dtype = binding.launch.dtype,
                        .op = binding.launch.reduce,
                        .bytes = binding.bytes,
                        .stream = reinterpret_cast<uint64_t>(stream)};
  group->recorder.add(call);
  if (!logs(LogLevel::info, LogArea::call)) return;
  log(LogLevel::info, LogArea::call, rank,
      fmt::format("call {} of executable {}: {} of {} bytes, {}, {}, on stream {}", call.call,
                  number, name(plan->contract.kind), call.bytes, info(call.dtype).name,
                  name(call.op), fmt::ptr(stream)));
}

bool Executable::State::launch(const BoundCall::State& binding, StreamHandle stream,
                               Diagnostics& diagnostics) {
  if (group->failure->report(diagnostics) != nullptr) return false;
  if (group->check_calls && !same_launch(binding.facts, diagnostics)) return false;
  note_launch(binding, stream);  // first: a part of a launch that fails may run, too
  if (enqueue(binding, stream, diagnostics)) return true;
  group->fail(diagnostics);  // the others wait for this call
  return false;
}

bool Executable::State::start(const BoundCall::State& binding, StreamHandle stream,
                              Diagnostics& diagnostics) {
  const OwnCall& own = binding.own;
  if (own.kernel == nullptr) return group->device->launch(binding.launch, stream, diagnostics);
  return own_kernels->loaded().launch(own.kernel, binding.launch, own.arguments(), stream,
                                      diagnostics);
}

bool Executable::State::enqueue(const BoundCall::State& binding, StreamHandle stream,
                                Diagnostics& diagnostics) {
  Device& device = *group->device;
  for (const StagingCopy& c : binding.before) {
    if (!device.copy(c.to, c.from, c.bytes, stream, diagnostics)) return false;
  }
  if (binding.launch.blocks > 0 && !start(binding, stream, diagnostics)) return false;
  if (binding.slot != nullptr) slots->launched(*binding.slot, stream);
  for (const StagingCopy& c : binding.after) {
    if (!device.copy(c.to, c.from, c.bytes, stream, diagnostics)) return false;
  }
  return true;
}

// Calls may still use its memory: that goes when they have ended.
Executable::~Executable() {
  if (state_->launches > 0) state_->group->retire(state_);
}

BoundCall Executable::bind(const CallOptions& call, Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->group->one_thread, diagnostics);
  if (!visit) return {};
  if (logs(LogLevel::trace, LogArea::bind)) {
    log(LogLevel::trace, LogArea::bind, state_->rank,
        fmt::format("executable {}: {} bytes of {}, input {}, output {}", state_->number,
                    call.bytes, info(call.dtype).name, call.input, call.output));
  }
  return BoundCall(state_->bind(call, diagnostics));
}
bool Executable::binds_together() const { return state_->collective_bind(); }
bool Executable::bind_waits(const CallOptions& call) { return state_->bind_waits(call); }
bool Executable::launch(const BoundCall& binding, StreamHandle stream, Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->group->one_thread, diagnostics);
  if (!visit) return false;
  if (!binding || binding.state().executable != state_.get()) {
    return refuse(diagnostics, "wrong-binding", "the call was not bound by this executable");
  }
  return state_->launch(binding.state(), stream, diagnostics);
}
const Program& Executable::plan() const { return *state_->plan; }

}  // namespace mscclc
