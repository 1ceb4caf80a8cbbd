// Loading a plan: all that is made once. load/ has its parts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/early_launch.h"
#include "ir/verify/row_faults.h"
#include "ir/verify/verify.h"
#include "runtime/choice/proofs/check_proof.h"
#include "runtime/choice/proofs/policy.h"
#include "runtime/core/communicator/executable.h"
#include "runtime/core/communicator/load/load_message.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/core/device/links.h"
#include "runtime/support/bytes.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/memory/handle.h"
#include "runtime/support/observe/log.h"

namespace mscclc {
namespace {

/// One load() of an executable, which it fills.
class PlanLoader {
 public:
  PlanLoader(Executable::State& executable, Diagnostics& diagnostics)
      : x_(executable), group_(*executable.group), diagnostics_(diagnostics) {}

  bool run();

 private:
  bool prepare();
  bool check_plan();
  bool check_flags() const;
  bool lower_plan();
  bool check_fit() const;
  bool find_kernels();
  Result<void> order_kernels(bool wait);
  void prepare_binds();
  bool allocate();
  GraphsEnd graphs_end() const;
  bool describe(std::vector<uint8_t>& message);
  bool connect_peer(uint32_t peer, std::span<const uint8_t> message);
  bool connect(const std::vector<std::vector<uint8_t>>& messages);
  bool open_board(SharedBoard& board, const std::vector<std::vector<uint8_t>>& messages);
  bool write_program();
  bool join_switches();
  /// Do only compiled kernels run it on this device?
  bool needs_kernels() const { return !x_.plan->functions.empty() && !group_.device->runs_rows(); }
  bool refuse_without_kernels(const Error& why);
  uint64_t program_bytes() const;
  /// Counts that all blocks keep from call to call.
  uint64_t counts() const { return uint64_t{x_.blocks()} * x_.on_device.wait_slots->per_block(); }

  Executable::State& x_;
  RankGroup& group_;
  Diagnostics& diagnostics_;
  std::string hash_;                   ///< plan_digest()
  std::vector<uint8_t> board_ticket_;  ///< of own_board, if this rank makes it
  bool scratch_in_call_ = false;       ///< known to be so
};

bool PlanLoader::check_plan() {
  const Program& plan = *x_.plan;
  if (plan.contract.kind == CollectiveKind::none) {
    return refuse(diagnostics_, "no-contract", "the plan does not say which collective it is");
  }
  if (x_.options.max_bytes >> 48 != 0) {
    return refuse(diagnostics_, "too-large",
                  fmt::format("a plan for messages of {} bytes, which is 256 TiB or more",
                              x_.options.max_bytes));
  }
  if (!check_flags()) return false;
  if (const auto fault = columns_fault(plan)) {
    return refuse(diagnostics_, fault->code.c_str(), fault->message);
  }
  if (!plan.split) {
    return refuse(diagnostics_, "not-split",
                  "the program is not a plan yet: compile it with the pass 'split'");
  }
  const Environment environment = Environment::of_process();
  const auto policy = proof_policy(x_.options.proof, environment, diagnostics_);
  const auto digest = policy ? plan_digest(x_.plan, diagnostics_) : std::nullopt;
  if (!digest) return false;
  hash_ = hex(*digest);
  if (*policy == ProofPolicy::require) {
    const auto proof = check_proof(plan, *digest, environment, diagnostics_);
    if (!proof) return false;
    x_.rounds_on_the_way = proof->rounding == Rounding::each_op;
    scratch_in_call_ = x_.options.in_turn && keeps_scratch_in_call(plan, *digest);
    return true;
  }
  warn_of_skipped(mscclc::quoted(plan.name), x_.rank, diagnostics_);
  return true;
}

// What no call could do better: its caller may promise all that there is to promise.
bool PlanLoader::check_flags() const {
  for (const FlagArray& array : x_.plan->flags) {
    const uint32_t side = array.of_output ? kOutput : kInput;
    if (!x_.options.zero_copy && x_.stages(x_.rank, side)) {
      return refuse_staged(*x_.plan, array, diagnostics_);
    }
  }
  return check_room(
      *x_.plan, x_.rank,
      {.multiprocessors = group_.device->multiprocessors(), .order = LaunchOrder::plan_first},
      diagnostics_);
}

// Devices run sums and row functions in steps of their own, compiled kernels together.
bool PlanLoader::lower_plan() {
  const RowSteps rows = needs_kernels() ? KernelChoice::row_steps(*x_.plan) : RowSteps::apart;
  return lower_rank(*x_.plan, x_.rank, x_.program, diagnostics_, rows);
}

// Asks about the kernels that may run, with the memory that programs take: of all types, as they
// add up by default. Other calls ask when they are bound.
bool PlanLoader::check_fit() const {
  device::LaunchPlan like;
  like.blocks = x_.blocks();
  like.threads = x_.plan->launch.threads;
  if (like.blocks == 0 || needs_kernels()) return true;
  BlockPrograms programs;
  const std::vector<device::BaseAddress> bases(x_.program.bases.size());
  std::vector<device::ChannelEnd> ends(x_.channels().size());
  for (uint32_t c = 0; c < ends.size(); ++c) ends[c].port = x_.goes_by_proxy(c) ? 1 : 0;
  if (!programs.pack(x_.program, {bases, ends}, *x_.on_device.wait_slots))
    return too_large(programs, diagnostics_);
  like.programs = programs.data();
  like.program_bytes = static_cast<uint32_t>(BlockPrograms::most_bytes(x_.program) / like.blocks);
  like.uses = programs.uses();
  like.ranks_here = group_.neighbours.ranks_here;
  return std::all_of(dtype_table().begin(), dtype_table().end(), [&](const DtypeInfo& type) {
    like.dtype = type.dtype;
    like.accumulate = type.accumulate;
    return group_.device->fits(like, diagnostics_).has_value();
  });
}

// What bind() would find out each time.
void PlanLoader::prepare_binds() {
  const Contract& contract = x_.plan->contract;
  const uint32_t chunks = contract.chunk_count(Side::output, x_.rank);
  Promise promise;
  for (uint32_t c = 0; c < chunks; ++c) {
    if (!contract.promise(x_.rank, c, promise)) continue;
    if (x_.scratch.promised.empty() || x_.scratch.promised.back().end != c)
      x_.scratch.promised.push_back({c, c});
    x_.scratch.promised.back().end = c + 1;
  }
  std::vector<uint32_t>& addressed = x_.scratch.addressed;
  addressed = {x_.rank};
  for (const device::Base& base : x_.program.bases) {
    if (base.buffer < kFirstScratch) addressed.push_back(base.rank);
  }
  std::sort(addressed.begin(), addressed.end());
  addressed.erase(std::unique(addressed.begin(), addressed.end()), addressed.end());
  x_.scratch.places.resize(group_.size());
}

// Those beside the plan's file, or from the device's maker. An error: there are none, and will be
// none.
Result<void> PlanLoader::order_kernels(bool wait) {
  Device& device = *group_.device;
  if (device.architecture().empty()) {
    return Error{fmt::format("{} runs no kernels of plans", device.name())};
  }
  auto kernels = KernelChoice::of(*x_.plan, x_.rank, hash_);
  if (!kernels) return kernels.error();
  x_.compiled_kernels = *std::move(kernels);
  Error none{"there is no file of kernels"};
  if (!x_.options.plan_file.empty()) {
    const auto loaded = x_.compiled_kernels->load_file(x_.options.plan_file, device);
    if (loaded) return {};
    none = loaded.error();
  }
  KernelMaker* const maker = device.kernel_maker();
  if (maker == nullptr) return none;
  x_.kernels_to_come = maker->order({x_.plan, hash_, device.architecture(), wait});
  const auto* const made = x_.kernels_to_come->result();
  if (made == nullptr) return {};
  const auto ordered = std::exchange(x_.kernels_to_come, nullptr);
  if (!*made) return made->error();
  return x_.compiled_kernels->load((*made)->image, (*made)->from, device);
}

bool PlanLoader::refuse_without_kernels(const Error& why) {
  Diagnostic& d = diagnostics_.error(
      "no-row-functions", {},
      fmt::format("{} has no kernels of '{}', and nothing else on it runs row functions: {}",
                  group_.device->name(), x_.plan->name, why.text()));
  d.notes.push_back({.text = "install libnvrtc or nvcc where the job runs (MSCCLC_NVRTC, "
                             "CUDA_HOME), or lay kernels beside the plan's file: 'mscclc compile "
                             "--emit=cubin'"});
  return false;
}

// A plan without compiled kernels works as well, unless it has row functions: otherwise it is an
// error only where the user wants it so.
bool PlanLoader::find_kernels() {
  const bool needed = needs_kernels();
  if (x_.blocks() == 0) return true;
  if (needed && !x_.options.compiled_kernels) {
    return refuse_without_kernels({"the load asks for the interpreter"});
  }
  if (!x_.options.compiled_kernels) return true;
  if (!needed && x_.options.plan_file.empty() && group_.device->architecture().empty()) return true;
  const auto mode = Environment::of_process().text(Variable::MSCCLC_KERNELS, diagnostics_);
  if (!mode) return false;
  const bool now = *mode == "now";
  const Result<void> found =
      *mode == "off" ? Result<void>(Error{"MSCCLC_KERNELS is off"}) : order_kernels(now || needed);
  if (found && x_.kernels_to_come == nullptr) {
    log(LogLevel::info, LogArea::load, x_.rank,
        fmt::format("executable {} has compiled kernels: {}", x_.number,
                    x_.compiled_kernels->description(*x_.plan)));
  }
  if (found) return true;
  x_.compiled_kernels = nullptr;
  if (needed) return refuse_without_kernels(found.error());
  log(LogLevel::info, LogArea::load, x_.rank,
      fmt::format("the interpreter runs executable {}: {}", x_.number, found.error().text()));
  if (!now || group_.device->architecture().empty()) return true;
  return refuse(diagnostics_, "no-compiled-kernel",
                fmt::format("MSCCLC_KERNELS is now, and there are no kernels of '{}': {}",
                            x_.plan->name, found.error().text()));
}

bool PlanLoader::prepare() {
  if (!check_plan() || !lower_plan()) return false;
  if (!check_links(*x_.plan, x_.rank, group_.neighbours.links, diagnostics_)) return false;
  if (group_.device->launches_early()) mark_early_launch(*x_.plan, x_.rank, x_.program);
  x_.on_device.wait_slots.emplace(x_.program);
  if (!check_fit()) return false;
  if (!find_kernels()) return false;
  prepare_binds();
  return x_.memory.lay_out(x_.program, diagnostics_) && allocate();
}

uint64_t PlanLoader::program_bytes() const {
  const Rank& own = x_.plan->ranks[x_.rank];
  return DeviceStructs::bytes_of<device::RankContext>(1) +
         DeviceStructs::bytes_of<device::ChannelEnd>(own.channels.size()) +
         DeviceStructs::bytes_of<uint64_t>(own.semaphores.size()) +
         DeviceStructs::bytes_of<device::Barrier>(x_.program.barriers.size()) +
         2 * DeviceStructs::bytes_of<uint64_t>(1) +  // claimed and seen of the queue
         DeviceStructs::bytes_of<uint64_t>(counts());
}

// With an object of a graph's own the driver may hold up what its kernels wait for: calls of
// another rank on this GPU, copies of the proxy (docs/records/rejected.md).
GraphsEnd PlanLoader::graphs_end() const {
  bool alone = group_.neighbours.ranks_here == 1;
  for (uint32_t c = 0; c < x_.channels().size(); ++c) alone &= !x_.goes_by_proxy(c);
  return alone ? GraphsEnd::known : GraphsEnd::unknown;
}

bool PlanLoader::allocate() {
  if (!x_.memory.allocate(program_bytes(), scratch_in_call_, diagnostics_)) return false;
  const auto source = [pool = group_.memory.own, of = group_.device](uint64_t bytes,
                                                                     Diagnostics& problems) {
    const PoolPiece piece = pool->take(*of, bytes, "programs of calls", problems);
    return piece ? piece.memory() : nullptr;
  };
  const uint64_t lines =
      x_.compiled_kernels == nullptr ? 0 : x_.compiled_kernels->bytes_in_memory();
  x_.on_device.slots = std::make_shared<SlotPool>(
      group_.device, std::max(BlockPrograms::most_bytes(x_.program), lines), source, graphs_end());
  return true;
}

// What ranks must agree on, then what they need of each other.
bool PlanLoader::describe(std::vector<uint8_t>& message) {
  const LoadMessage own{.call = x_.options.call,
                        .hash = hash_,
                        .max_bytes = x_.options.max_bytes,
                        .element = x_.element,
                        .zero_copy = x_.options.zero_copy,
                        .in_turn = x_.options.in_turn,
                        .in_order = x_.options.in_order,
                        .board = board_ticket_};
  own.encode(message);
  if (!x_.lanes.await(message, diagnostics_)) return false;
  if (!x_.memory.offer_region(message, diagnostics_)) return false;
  if (x_.options.zero_copy) return true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (!x_.stages(x_.rank, side)) continue;
    if (!x_.memory.offer_staging(side, message, diagnostics_)) return false;
  }
  return true;
}

bool PlanLoader::connect_peer(uint32_t peer, std::span<const uint8_t> message) {
  ByteReader reader(message);
  LoadMessage loaded;
  if (!decode(reader, hash_.size(), loaded, diagnostics_)) return false;
  if (!x_.lanes.take_offer(peer, reader, diagnostics_)) return false;
  const bool apart = reader.number<uint8_t>() != 0;
  if (!reader.good()) return refuse(diagnostics_, "bad-message", "a peer's message is cut off");
  std::span<const uint8_t> rest = reader.rest();
  if (!x_.memory.map_region(peer, apart, rest, diagnostics_)) return false;
  if (x_.options.zero_copy) return true;
  for (const uint32_t side : {kInput, kOutput}) {
    if (!x_.stages(peer, side)) continue;
    if (!x_.memory.map_staging(peer, side, rest, diagnostics_)) return false;
  }
  return true;
}

bool PlanLoader::connect(const std::vector<std::vector<uint8_t>>& messages) {
  for (uint32_t r = 0; r < messages.size(); ++r) {
    if (r != x_.rank && !connect_peer(r, messages[r])) return false;
  }
  return true;
}

bool PlanLoader::write_program() {
  DeviceStructs image(x_.memory.program(), program_bytes());
  std::vector<uint64_t> semaphores;
  for (const Semaphore& s : x_.plan->ranks[x_.rank].semaphores) semaphores.push_back(s.initial);
  std::vector<device::Barrier> barriers;
  for (const BarrierMembers& b : x_.program.barriers) barriers.push_back({0, b.blocks.size()});
  const std::vector<uint64_t> zero(1, 0);
  device::RankContext& context = x_.on_device.context;
  x_.on_device.contexts = image.add(std::span<const device::RankContext>(&context, 1));
  x_.on_device.ends = x_.memory.channel_ends();
  context.channels = image.add(x_.on_device.ends);
  x_.on_device.where.semaphores = image.add(semaphores);
  x_.on_device.where.barriers = image.add(barriers);
  x_.on_device.calls_ended = image.add(std::vector<uint64_t>(counts()));
  context.queue.claimed = image.add(zero);
  context.queue.seen = image.add(zero);
  context.faults = x_.memory.faults();
  context.abort = group_.failure->word();
  if (group_.device->runs_rows() && !x_.plan->functions.empty()) {
    x_.on_device.rows = {x_.plan->functions, x_.plan->contract.columns};
    context.rows = &x_.on_device.rows;
  }
  return image.write(*group_.device, diagnostics_);
}

bool PlanLoader::open_board(SharedBoard& board, const std::vector<std::vector<uint8_t>>& messages) {
  if (x_.uses_board_of_all()) return true;
  LoadMessage maker;
  ByteReader reader(messages[group_.neighbours.beside.front()]);
  return decode(reader, hash_.size(), maker, diagnostics_) &&
         board.open(group_, maker.board, x_.own_board, diagnostics_);
}

// Regions: 0 the plan's, 1 and 2 staging by side.
bool PlanLoader::join_switches() {
  std::vector<SwitchRegion> regions = {
      {x_.memory.regions()[x_.rank].arrived(0), x_.memory.region_bytes()}};
  for (const uint32_t side : {kInput, kOutput}) {
    const Memory* const staging = x_.memory.staging(x_.rank, side);
    regions.push_back(staging == nullptr ? SwitchRegion{nullptr, 0}
                                         : SwitchRegion{staging->data(), staging->bytes()});
  }
  return x_.on_device.switches.join(
      *x_.plan, x_.rank, x_.program,
      [&](const std::vector<uint32_t>& members, std::unique_ptr<SwitchTeam>& team) {
        return group_.device->join_switch(*group_.bootstrap, members, regions, team, diagnostics_);
      });
}

bool PlanLoader::run() {
  std::vector<uint8_t> message;
  SharedBoard board;  // until all have opened it
  const bool able = prepare() &&
                    (x_.uses_board_of_all() || board.make(group_, board_ticket_, diagnostics_)) &&
                    describe(message);
  std::vector<std::vector<uint8_t>> messages;
  if (!group_.exchange(able, message, "load a plan", messages, diagnostics_) ||
      !same_loads(messages, hash_.size(), diagnostics_)) {
    return false;
  }
  const bool connected =
      connect(messages) && open_board(board, messages) && write_program() &&
      x_.lanes.start(x_.on_device.ends, x_.on_device.context.queue, diagnostics_) &&
      group_.device->write(x_.on_device.contexts, &x_.on_device.context,
                           sizeof x_.on_device.context, diagnostics_);
  if (!group_.agree(connected, "map the memory of the other ranks", diagnostics_)) return false;
  // Lanes know memory by its handle: it stays the same.
  if (group_.compared.far == nullptr) group_.memory.shared->close_descriptors();
  group_.records.recorder.loaded(x_.number, {x_.plan->name, hash_, x_.plan->contract.kind});
  group_.records.plan_names.add(x_.number, x_.plan->name);
  log(LogLevel::info, LogArea::load, x_.rank,
      fmt::format("executable {} is '{}', for {} bytes at most{}; its hash is {}", x_.number,
                  x_.plan->name, x_.options.max_bytes, x_.options.zero_copy ? ", zero copy" : "",
                  hash_));
  return join_switches();
}

}  // namespace

bool too_large(const BlockPrograms& programs, Diagnostics& diagnostics) {
  return refuse(diagnostics, "too-large", std::string(programs.refusal()));
}

bool load(Executable::State& executable, Diagnostics& diagnostics) {
  return PlanLoader(executable, diagnostics).run();
}

}  // namespace mscclc
