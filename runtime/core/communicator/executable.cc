#include "runtime/core/communicator/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/early_launch.h"
#include "ir/verify/verify.h"
#include "runtime/choice/proofs/check_proof.h"
#include "runtime/choice/proofs/policy.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/core/device/links.h"
#include "runtime/support/bytes.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/memory/handle.h"
#include "runtime/support/observe/log.h"

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
  return fmt::format("for {} bytes at most, elements of {} bytes{}{}", loaded.max_bytes,
                     loaded.element, loaded.zero_copy ? ", zero copy" : "",
                     loaded.in_turn ? ", in turn" : "");
}

constexpr size_t kMaxCallText = 512;

bool refuse_calls(const std::string& first, uint32_t rank, const std::string& other,
                  Diagnostics& diagnostics) {
  diagnostics
      .error("call-differs", {},
             fmt::format("ranks make different calls: rank 0 makes {}; rank {} makes {}", first,
                         rank, other))
      .notes.push_back({.text = "all ranks must make the same calls, in the same order"});
  return false;
}

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
      number(++this->group->loads),
      far_calls(options.in_turn || this->group->far_calls == nullptr
                    ? this->group->far_calls
                    : std::make_shared<FarCalls>()) {}

Executable::State::~State() { proxy.reset(); }

bool Executable::State::check_plan(Diagnostics& diagnostics) {
  if (plan->contract.kind == CollectiveKind::none) {
    return refuse(diagnostics, "no-contract", "the plan does not say which collective it is");
  }
  if (!plan->split) {
    return refuse(diagnostics, "not-split",
                  "the program is not a plan yet: compile it with the pass 'split'");
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
  like.blocks = blocks();
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

// A plan without compiled kernels works as well, so nothing here is an error.
void Executable::State::load_compiled_kernels() {
  if (options.plan_file.empty() || blocks() == 0) return;
  auto found = KernelChoice::load(*plan, rank, hash_, options.plan_file, *group->device);
  log(LogLevel::info, LogArea::load, rank,
      found ? fmt::format("executable {} has compiled kernels: '{}'", number, (*found)->file())
            : fmt::format("the interpreter runs executable {}: {}", number, found.error().text()));
  if (found) compiled_kernels = *std::move(found);
}

bool Executable::State::prepare(Diagnostics& diagnostics) {
  if (!check_plan(diagnostics) || !lower_rank(*plan, rank, program, diagnostics)) {
    return false;
  }
  if (!check_links(*plan, rank, group->links, diagnostics)) return false;
  if (group->device->launches_early()) mark_early_launch(*plan, rank, program);
  wait_slots.emplace(program);
  if (!check_fit(diagnostics)) return false;
  load_compiled_kernels();
  prepare_binds();
  return lay_out(diagnostics) && allocate(diagnostics);
}

// What ranks must agree on, then what they need of each other.
bool Executable::State::describe(std::vector<uint8_t>& message, Diagnostics& diagnostics) {
  const std::string_view call = std::string_view(options.call).substr(0, kMaxCallText);
  ByteWriter(message)
      .number(static_cast<uint32_t>(call.size()))
      .text(call)
      .text(hash_)
      .number(options.max_bytes)
      .number(element)
      .number(static_cast<uint8_t>(options.zero_copy))
      .number(static_cast<uint8_t>(options.in_turn))
      .number(static_cast<uint8_t>(board_ticket_.size()))
      .bytes(board_ticket_);
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
  loaded.in_turn = message.number<uint8_t>() != 0;
  loaded.board = message.bytes(message.number<uint8_t>());
  return message.good() || refuse(diagnostics, "bad-message", "a peer's message is cut off");
}

// All ranks compare the same messages: they all go on, or none does, without another exchange.
bool Executable::State::same_plans(const std::vector<std::vector<uint8_t>>& messages,
                                   Diagnostics& diagnostics) const {
  Loaded first;
  for (uint32_t r = 0; r < messages.size(); ++r) {
    ByteReader reader(messages[r]);
    Loaded loaded;
    if (!read_loaded(reader, loaded, diagnostics)) return false;
    if (r == 0) first = loaded;
    if (loaded.is_like(first)) continue;
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

bool Executable::State::connect(const std::vector<std::vector<uint8_t>>& messages,
                                Diagnostics& diagnostics) {
  for (uint32_t r = 0; r < messages.size(); ++r) {
    if (r != rank && !connect_peer(r, messages[r], diagnostics)) return false;
  }
  return true;
}

bool Executable::State::write_program(Diagnostics& diagnostics) {
  DeviceStructs image(memory->data(), memory_bytes());
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
  context.queue.seen = image.add(zero);
  context.faults = reinterpret_cast<device::Fault*>(faults->data());
  context.abort = group->failure->word();
  return image.write(*group->device, diagnostics);
}

bool Executable::State::load(Diagnostics& diagnostics) {
  std::vector<uint8_t> message;
  SharedBoard board;  // until all have opened it
  const bool able = prepare(diagnostics) &&
                    (options.in_turn || board.make(*group, board_ticket_, diagnostics)) &&
                    describe(message, diagnostics);
  std::vector<std::vector<uint8_t>> messages;
  if (!group->exchange(able, message, "load a plan", messages, diagnostics) ||
      !same_plans(messages, diagnostics)) {
    return false;
  }
  const bool connected = connect(messages, diagnostics) &&
                         open_board(board, messages, diagnostics) && write_program(diagnostics) &&
                         start_proxy(diagnostics) &&
                         group->device->write(contexts, &context, sizeof context, diagnostics);
  if (!group->agree(connected, "map the memory of the other ranks", diagnostics)) return false;
  // Lanes know memory by its handle: it stays the same.
  if (group->far_calls == nullptr) group->shared_memory->close_descriptors();
  group->recorder.loaded(number, {plan->name, hash_, plan->contract.kind});
  group->plan_names.add(number, plan->name);
  log(LogLevel::info, LogArea::load, rank,
      fmt::format("executable {} is '{}', for {} bytes at most{}; its hash is {}", number,
                  plan->name, options.max_bytes, options.zero_copy ? ", zero copy" : "", hash_));
  return join_switches(diagnostics);
}

bool Executable::State::open_board(SharedBoard& board,
                                   const std::vector<std::vector<uint8_t>>& messages,
                                   Diagnostics& diagnostics) {
  Loaded maker;
  ByteReader reader(messages[group->beside.front()]);
  return options.in_turn || (read_loaded(reader, maker, diagnostics) &&
                             board.open(*group, maker.board, own_board, diagnostics));
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

}  // namespace mscclc
