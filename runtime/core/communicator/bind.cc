#include <fmt/format.h>

#include <algorithm>

#include "executor/rows/externals.h"
#include "ir/support/precondition.h"
#include "runtime/core/communicator/binder.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

/// Messages up to which calls begin early. A launch takes a microsecond or two, of some 80 for so
/// many bytes; blocks of the next call that wait longer take room from kernels of other streams.
constexpr uint64_t kMaxEarlyBytes = uint64_t{16} << 20;

/// Between rows, in bytes: far more than there is, and times any number of ranks no overflow.
constexpr uint64_t kMaxPitch = uint64_t{1} << 46;

/// An order is promised of what is rounded once, at the end.
bool check_order(const Executable::State& x, const Call& call, Diagnostics& diagnostics) {
  const SumOrder order = x.plan->contract.order;
  if (!x.options.keeps_order || !x.rounds_on_the_way || is_extremum(call.reduce) ||
      !rounds_on_the_way(call.dtype, call.accumulate) || serves(SumOrder::replicated, order)) {
    return true;
  }
  return refuse(
      diagnostics, "sum-order",
      fmt::format("the plan promises 'order: {}' and rounds sums of '{}' on the way: take "
                  "a type that is added up in itself, such as f32, or a plan that adds "
                  "up in one op",
                  name(order), info(call.dtype).name));
}

void take_types(const CollectiveCall& asked, Call& call) {
  call.dtype = asked.dtype;
  call.accumulate = asked.accumulate.value_or(info(asked.dtype).accumulate);
  call.reduce = asked.op;
}

}  // namespace

bool Binder::check_size() {
  if (asked_.kind != CollectiveKind::none && asked_.kind != contract_.kind) {
    return refuse(diagnostics_, "bad-call",
                  fmt::format("a call of {}; the plan is one of {}", name(asked_.kind),
                              name(contract_.kind)));
  }
  if (asked_.bytes == 0 && asked_.count != 0) {
    return refuse(diagnostics_, "bad-call",
                  "a call of a plan says how many bytes its message has, not a count");
  }
  const DtypeInfo& type = info(asked_.dtype);
  if (x_.parts > 0) call_.part_bytes = asked_.bytes / x_.parts / type.bytes * type.bytes;
  take_types(asked_, call_);
  chunking_.emplace(contract_, call_.part_bytes, x_.plan->granule(call_.dtype));
  if (call_.part_bytes * x_.parts != asked_.bytes) {
    return refuse(
        diagnostics_, "message-size",
        fmt::format("{} bytes are not a message of {} elements for {} ranks; the next "
                    "smaller one has {}",
                    asked_.bytes, type.name, contract_.ranks, call_.part_bytes * x_.parts));
  }
  if (asked_.bytes > x_.options.max_bytes) {
    return refuse(diagnostics_, "over-capacity",
                  fmt::format("a message of {} bytes; the plan was loaded for {} at most: load it "
                              "with a larger max_bytes",
                              asked_.bytes, x_.options.max_bytes));
  }
  return set_pitch();
}

// Rows of staging follow one another, whatever the pitch of the caller's.
bool Binder::set_pitch() {
  const uint64_t pitch = asked_.row_pitch, part = call_.part_bytes;
  if (pitch == 0) return true;
  const char* const why_not = !x_.takes_pieces    ? "the plan takes no pieces of calls"
                              : pitch < part      ? "they would overlap"
                              : pitch > kMaxPitch ? "no memory is so large"
                                                  : nullptr;
  if (why_not != nullptr) {
    return refuse(
        diagnostics_, "message-size",
        fmt::format("rows of {} bytes cannot begin {} bytes apart: {}", part, pitch, why_not));
  }
  const bool* const staged = x_.staged_rows;
  callers_pitch_ = RowPitch(contract_, part, pitch, pitch);
  pitch_ = RowPitch(contract_, part, staged[kInput] ? part : pitch, staged[kOutput] ? part : pitch);
  return true;
}

// Nothing to move, nothing to launch, as in NCCL. For blocks it must not count as a call either:
// ranks would not wait for one another's packets in it, and go further ahead than the plan's
// scratch allows. Ranks do compare it, as another one's call may have something to move.
bool Binder::empty() const {
  return asked_.bytes == 0 && contract_.kind != CollectiveKind::barrier;
}

bool Binder::check_pointers() {
  for (const uint32_t side : {kInput, kOutput}) {
    if (pointers_[side] != nullptr || callers_bytes(side) == 0) continue;
    return refuse(diagnostics_, "no-buffer",
                  fmt::format("rank {} needs an {} of {} bytes", x_.rank, name_of(side),
                              callers_bytes(side)));
  }
  const uint64_t in_bytes = callers_bytes(kInput), out_bytes = callers_bytes(kOutput);
  const auto lie = [this](CallFacts::Placement how) {
    facts_.record.placement = static_cast<uint8_t>(how);
  };
  lie(CallFacts::Placement::free);
  if (in_bytes == 0 || out_bytes == 0) return true;
  const auto in = reinterpret_cast<uintptr_t>(pointers_[kInput]);
  const auto out = reinterpret_cast<uintptr_t>(pointers_[kOutput]);
  const bool apart = in + in_bytes <= out || out + out_bytes <= in;
  const CallerBuffers callers =
      caller_buffers(contract_, *chunking_, x_.rank, true, callers_pitch_);
  const bool coincide =
      callers.shared && (callers.outer == kInput ? out - in : in - out) == callers.inner_offset;
  if (callers.shared) {
    lie(apart ? CallFacts::Placement::apart : CallFacts::Placement::in_place);
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
  facts_.plan = x_.plan->name;
  CallRecord& record = facts_.record;
  record.executable = x_.number;
  record.bytes = asked_.bytes;
  record.row_pitch = asked_.row_pitch;
  record.counts = digest_of_counts(asked_.counts);
  record.dtype = record.accumulate = static_cast<uint8_t>(asked_.dtype);
  if (!contract_.reduces()) return;
  record.reduce = static_cast<uint8_t>(call_.reduce);
  record.accumulate = static_cast<uint8_t>(call_.accumulate);
}

bool Binder::prepare() {
  if (x_.group->failure->report(diagnostics_) != nullptr) return false;
  if (!check_size() || !check_call(*x_.plan, x_.use, call_, diagnostics_) ||
      !check_order(x_, call_, diagnostics_) || !check_pointers() || !place_externals() ||
      !place_flags()) {
    return false;
  }
  if (x_.use.sentinel && info(asked_.dtype).bytes != x_.element) {
    return refuse(diagnostics_, "sentinel-width",
                  fmt::format("the plan's sentinel packets were set up for elements of {} bytes, "
                              "'{}' has {}: load the plan once more with this dtype",
                              x_.element, info(asked_.dtype).name, info(asked_.dtype).bytes));
  }
  describe();
  return fit_to_size();
}

// A program that is fitted to this size already stays as it is.
bool Binder::fit_to_size() {
  const uint32_t granule = x_.plan->granule(call_.dtype);
  const std::tuple size{call_.part_bytes, asked_.row_pitch, granule};
  if (x_.scratch.fitted_size == size) return true;
  x_.scratch.fitted_size.reset();
  x_.program.align = granule;
  if (!fit_rank_to_size(x_.program, *x_.plan, x_.rank, *chunking_, x_.capacity, diagnostics_,
                        pitch_)) {
    return false;
  }
  x_.scratch.fitted_size = size;
  return true;
}

bool Binder::place_externals() {
  const ExternalsOfCall call{.plan = *x_.plan,
                             .rank = x_.rank,
                             .dtype = call_.dtype,
                             .chunking = *chunking_,
                             .input = {pointers_[kInput], callers_bytes(kInput)},
                             .output = {pointers_[kOutput], callers_bytes(kOutput)}};
  return mscclc::place_externals(call, asked_.externals, x_.scratch.externals, diagnostics_);
}

bool Binder::place_flags() {
  const Program& plan = *x_.plan;
  const bool says_room = asked_.budget != 0 || asked_.launch_order != LaunchOrder::other_first;
  if (plan.flags.empty() && says_room) {
    return refuse(diagnostics_, "bad-call",
                  "budget and launch_order are for plans with flags: this one has none");
  }
  if (plan.flags.empty() && asked_.flags.empty()) return true;
  const std::vector<CallMemory> others = memory_besides_flags();
  const FlagsOfCall call{.plan = plan, .rank = x_.rank, .moves_data = !empty(), .others = others};
  std::vector<BlockPrograms::Places::Flags> flags = x_.scratch.flags;
  if (!mscclc::place_flags(call, asked_.flags, flags, diagnostics_) ||
      !check_room(plan, x_.rank,
                  {.multiprocessors = x_.group->device->multiprocessors(),
                   .budget = asked_.budget,
                   .order = asked_.launch_order},
                  diagnostics_)) {
    return false;
  }
  x_.scratch.flags = std::move(flags);
  return true;
}

std::vector<CallMemory> Binder::memory_besides_flags() const {
  std::vector<CallMemory> all = {{"input", pointers_[kInput], callers_bytes(kInput)},
                                 {"output", pointers_[kOutput], callers_bytes(kOutput)}};
  if (x_.scratch.externals.empty()) return all;
  const auto layouts = rows::lay_out_externals(*x_.plan, x_.rank, *chunking_, call_.dtype);
  for (size_t e = 0; e < layouts.size(); ++e) {
    const BlockPrograms::Places::External& external = x_.scratch.externals[e];
    if (external.is_value) continue;
    all.push_back(
        {"external '" + x_.plan->externals[e].name + "'", external.address, layouts[e].bytes()});
  }
  return all;
}

// A copy before the kernel would not have what the other side has yet to write, and one after it
// comes too late.
bool Binder::has_flags_in_place() {
  for (const FlagArray& array : x_.plan->flags) {
    const uint32_t side = array.of_output ? kOutput : kInput;
    if (places_[x_.rank].side[side].kind == Kind::staging) {
      return refuse_staged(*x_.plan, array, diagnostics_);
    }
  }
  return true;
}

// No kernel for all plans has row functions: the plan's own must take the call.
bool Binder::check_rows(const BoundCall::State& made) {
  if (x_.plan->functions.empty() || made.launch.blocks == 0) return true;
  if (made.compiled.kernel != nullptr || x_.group->device->runs_rows()) return true;
  return refuse(diagnostics_, "no-row-functions",
                fmt::format("no kernel of '{}' takes this call of {} {}, and nothing else runs its "
                            "row functions: {}",
                            x_.plan->name, asked_.bytes, info(call_.dtype).name,
                            x_.compiled_kernels->why_not(made.programs, made.launch)));
}

bool Binder::write_programs(BoundCall::State& made) {
  const RankProgram& program = x_.program;
  std::vector<device::BaseAddress>& bases = x_.scratch.bases;
  bases.clear();
  for (const device::Base& b : program.bases) {
    uint8_t* at = address(b.rank, b.buffer);
    if (at == nullptr && b.buffer < kFirstScratch && bytes(b.rank, b.buffer) > 0) {
      return refuse_place(b.rank, b.buffer);
    }
    bases.push_back({at, b.copy_stride, b.copies});
  }
  x_.on_device.switches.fill(
      program, [this](uint32_t rank, uint32_t buffer) { return spot(rank, buffer); },
      [this](uint64_t buffer, const Switches::Members& members) {
        return joined_team(buffer, members);
      },
      bases);
  BlockPrograms::Places places = x_.on_device.where;
  places.bases = bases;
  places.ends = x_.on_device.ends;
  places.externals = x_.scratch.externals;
  places.flags = x_.scratch.flags;
  return move_or_pack(made, places);
}

// Where bind() is collective, another rank may be in place though this one is not. Programs that
// are short enough travel with the launch, if the device takes them.
bool Binder::move_or_pack(BoundCall::State& made, const BlockPrograms::Places& places) {
  const auto in_place = static_cast<uint8_t>(CallFacts::Placement::in_place);
  const MovedCalls::At at{places, asked_.row_pitch, facts_.record.placement == in_place};
  const auto fill = [&](const BlockPrograms::Places& there, std::vector<CompiledLine>& lines) {
    return made.programs.pack(x_.program, there, *x_.on_device.wait_slots) &&
           x_.compiled_kernels->shape().fill(made.programs, lines);
  };
  MovedCalls& moved = x_.scratch.moved;
  made.is_chosen = !x_.collective_bind() && moved.move(at, fill, made.launch, made.compiled);
  if (made.is_chosen) return true;
  if (!made.programs.pack(x_.program, places, *x_.on_device.wait_slots))
    return too_large(made.programs, diagnostics_);
  made.launch.context = x_.on_device.contexts;
  made.launch.calls = x_.on_device.calls_ended;
  made.launch.call_counts = x_.on_device.wait_slots->per_block();
  made.launch.programs = made.programs.data();
  made.launch.program_bytes = made.programs.stride();
  made.launch.uses = made.programs.uses();
  made.launch.carried =
      x_.group->device->carries_programs() && made.programs.bytes() <= device::kMaxCarried;
  made.choose_kernel(x_.compiled_kernels.get());
  moved.keep(at, made.launch, made.compiled);
  return true;
}

// A compiled kernel reads no programs: what it does read takes their place.
std::span<const uint8_t> BoundCall::State::in_slot() const {
  if (compiled.kernel != nullptr) {
    if (executable->compiled_kernels->bytes_in_memory() == 0) return {};
    return {reinterpret_cast<const uint8_t*>(compiled.lines.data()),
            compiled.lines.size() * sizeof(CompiledLine)};
  }
  if (launch.carried) return {};
  return {programs.data(), programs.bytes()};
}

bool BoundCall::State::place(SlotPool& slots, Diagnostics& diagnostics) {
  slot = nullptr;  // an old call's: its launch may not have run yet
  const std::span<const uint8_t> content = in_slot();
  if (content.empty()) return true;
  slot = slots.take(content, diagnostics);
  if (slot == nullptr) return false;
  if (compiled.kernel == nullptr) {
    launch.programs = slot->data;
  } else {
    compiled.lines_at = slot->data;
  }
  return true;
}

void BoundCall::State::choose_kernel(KernelChoice* kernels) {
  compiled.kernel = nullptr;
  is_chosen = kernels != nullptr && kernels->is_loaded();
  if (is_chosen) kernels->choose(programs, launch, compiled);
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
  const uint64_t pitch = asked_.row_pitch == 0 ? part : asked_.row_pitch;
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
  for (const auto& run : x_.scratch.promised) {
    const uint64_t begin = chunking_->offset(Side::output, rank, run.first);
    const uint64_t end = chunking_->offset(Side::output, rank, run.end - 1) +
                         chunking_->length(Side::output, rank, run.end - 1);
    copy_parts(kOutput, begin, end, made.after);
  }
}

// Addresses, lengths and types may need another kernel than those that load() has asked about.
// Compiled kernels are only chosen if they fit.
bool Binder::check_fit(BoundCall::State& made) {
  device::LaunchPlan& launch = made.launch;
  if (launch.blocks == 0 || made.compiled.kernel != nullptr) return true;
  const uint32_t in_short = launch.in_short != nullptr ? launch.in_short->operands : 0;
  const KernelKey key{launch.uses,      launch.program_bytes, call_.dtype,
                      call_.accumulate, call_.reduce,         in_short};
  auto known = x_.scratch.fitting.find(key);
  if (known == x_.scratch.fitting.end()) {
    const std::optional<uint32_t> most = x_.group->device->fits(launch, diagnostics_);
    if (!most) return false;
    known = x_.scratch.fitting.emplace(key, *most).first;
  }
  launch.most_blocks = known->second;
  return true;
}

/// A call to be filled; with the memory of an old one, if there is one to be had.
std::shared_ptr<BoundCall::State> Binder::blank() {
  std::shared_ptr<BoundCall::State> made = x_.collective_bind() ? nullptr : x_.scratch.calls.take();
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
  if (!has_flags_in_place()) return nullptr;
  made->launch.blocks = empty() ? 0 : x_.plan->ranks[x_.rank].blocks;
  made->launch.threads = x_.plan->launch.threads;
  // The next call's blocks would hold room that the other side of this one needs.
  made->launch.early = asked_.bytes <= kMaxEarlyBytes && x_.plan->flags.empty() &&
                       x_.group->device->launches_early();
  made->launch.previous_allows_early = asked_.previous_allows_early;
  made->launch.any_order = asked_.any_order;
  static_cast<Call&>(made->launch) = call_;
  made->launch.ranks_here = x_.group->neighbours.ranks_here;
  made->launch.patience =
      x_.group->timeout >= kForever
          ? 0
          : static_cast<uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(x_.group->timeout).count());
  if (!write_programs(*made)) return nullptr;
  plan_copies(*made);
  if (!made->place(*x_.on_device.slots, diagnostics_)) return nullptr;
  if (made->compiled.kernel == nullptr) shorten(*made);
  if (!check_rows(*made) || !check_fit(*made)) return nullptr;
  return made;
}

std::shared_ptr<BoundCall::State> Binder::run() {
  if (asked_.launch_order == LaunchOrder::other_only) {  // of any size, and without a kernel
    if (x_.collective_bind()) {
      diagnostics_.error("bad-call", {},
                         "ranks meet in calls of this plan, so nothing else can do one of them");
      return nullptr;
    }
    take_types(asked_, call_);
    describe();
    auto made = std::make_shared<BoundCall::State>();
    made->executable = &x_;
    made->facts = facts_;
    static_cast<Call&>(made->launch) = call_;
    made->is_chosen = true;
    return made;
  }
  if (x_.collective_bind()) return asked_.registered ? run_symmetric() : run_together();
  if (!prepare()) return nullptr;
  for (const uint32_t r : x_.scratch.addressed) places_[r] = staged_places(r, false);
  return make();
}

bool Binder::waits() {
  if (!x_.collective_bind() || !asked_.registered) return x_.collective_bind();
  if (x_.on_device.switches.teams().empty()) return false;
  return prepare() && place_symmetric() && !buffers_to_join().empty();
}

// Joining at a switch is for all ranks together, and so is the call that is the first to need it.
std::shared_ptr<BoundCall::State> Binder::run_symmetric() {
  if (!prepare() || !place_symmetric()) return nullptr;
  if (!buffers_to_join().empty()) return run_together();
  return make();
}

// Staging that not all ranks have taken is offered again by the next call that needs it.
std::shared_ptr<BoundCall::State> Binder::run_together() {
  facts_.record.call = ++x_.scratch.binds;
  if (!asked_.registered) facts_.record.bind = static_cast<uint32_t>(x_.scratch.binds);
  auto made = try_together();
  for (const uint32_t side : {kInput, kOutput}) {
    if (made == nullptr && offered_[side]) x_.memory.drop_staging(side);
  }
  return made;
}

// Collective: no rank is left with a call that another cannot make.
std::shared_ptr<BoundCall::State> Binder::try_together() {
  RankGroup& group = *x_.group;
  std::vector<std::vector<uint8_t>> messages;
  if (!exchange_places(prepare(), messages) || !same_calls(messages)) return nullptr;
  bool able = take_places(messages);
  if (!x_.on_device.switches.teams().empty()) {  // joining is for all or none
    if (!group.agree(able, "bind a call", diagnostics_)) return nullptr;
    able = join_buffers();
  }
  std::shared_ptr<BoundCall::State> made = able ? make() : nullptr;
  return group.agree(made != nullptr, "bind a call", diagnostics_) ? made : nullptr;
}

bool BoundCall::has_compiled_kernel() const {
  precondition(state_ != nullptr);
  return state_->compiled.kernel != nullptr;
}

std::shared_ptr<BoundCall::State> Executable::State::bind(const CollectiveCall& call,
                                                          Diagnostics& diagnostics) {
  const bool anew = collective_bind() || call.launch_order == LaunchOrder::other_only;
  if (!anew && !group->failure->happened()) {
    if (auto known = scratch.calls.find(call); known != nullptr) return known;
  }
  const std::vector<BlockPrograms::Places::Flags> flags = scratch.flags;
  auto made = Binder(*this, call, diagnostics).run();
  if (made == nullptr) {
    scratch.flags = flags;  // a call that is refused is not the plan's first
  } else if (!anew) {
    scratch.calls.keep(call, *plan, made);
  }
  return made;
}

bool Executable::State::bind_waits(const CollectiveCall& call) {
  Diagnostics ignored;  // bind() reports it
  return Binder(*this, call, ignored).waits();
}

}  // namespace mscclc
