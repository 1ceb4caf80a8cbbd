#include "runtime/core/communicator/launcher.h"

#include <fmt/format.h>

#include <utility>

#include "executor/stamps.h"
#include "ir/support/precondition.h"
#include "runtime/core/communicator/call/beside.h"
#include "runtime/core/communicator/executable.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

Launcher::Launcher(Executable::State& executable) : x_(executable), group_(*executable.group) {}

// Collective: all ranks learn of a call that is another one on some rank, and none launches it.
bool Launcher::same_on_all_ranks(const CallFacts& facts, Diagnostics& diagnostics) const {
  CallFacts own = facts;
  own.record.call = ++group_.compared.checked_launches;
  std::vector<uint8_t> message;
  encode(own, message);
  std::vector<std::vector<uint8_t>> messages;
  if (!group_.exchange(true, message, "launch a call", messages, diagnostics)) return false;
  std::vector<CallFacts> calls(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) {
    std::span<const uint8_t> rest = messages[r];
    if (decode(rest, calls[r]) && rest.empty()) continue;
    return refuse(diagnostics, "bad-message", "a peer's message does not describe its call");
  }
  return same_calls(calls, "launch", group_.buffers.overlaps(), diagnostics);
}

// Costs a launch a few stores.
void Launcher::note(const BoundCall::State& call, StreamHandle stream) {
  group_.running.launched(stream);
  const FlightCall noted{.executable = x_.number,
                         .call = ++launches_,
                         .dtype = call.launch.dtype,
                         .op = call.launch.reduce,
                         .bytes = call.facts.record.bytes,
                         .stream = reinterpret_cast<uint64_t>(stream)};
  group_.records.recorder.add(noted);
  if (!logs(LogLevel::info, LogArea::call)) return;
  log(LogLevel::info, LogArea::call, x_.rank,
      fmt::format("call {} of executable {}: {} of {} bytes, {}, {}, on stream {}", noted.call,
                  x_.number, name(x_.plan->contract.kind), noted.bytes, info(noted.dtype).name,
                  name(noted.op), fmt::ptr(stream)));
}

bool Launcher::same_call(const BoundCall::State& call, Diagnostics& diagnostics) {
  if (group_.compared.at_launch && !same_on_all_ranks(call.facts, diagnostics)) return false;
  const CallRecord& record = call.facts.record;
  CallBoard* const board =
      x_.uses_board_of_all() ? group_.compared.board.get() : x_.own_board.get();
  if (board != nullptr && !same_beside(group_, *board, record, diagnostics)) return false;
  return x_.lanes.far_calls() == nullptr || same_far_calls(record, diagnostics);
}

// A call without ports of this rank is noted on the lanes that calls before it have used.
bool Launcher::same_far_calls(const CallRecord& record, Diagnostics& diagnostics) {
  ComparedCalls& compared = group_.compared;
  std::optional<LaneNote> note;
  if (!same_far(group_, *x_.lanes.far_calls(), record, note, diagnostics)) return false;
  if (x_.lanes.proxy() == nullptr) {
    if (note && x_.options.in_turn && compared.note_far) compared.note_far(*note);
    return true;
  }
  if (x_.options.in_turn && compared.notes_far != x_.number) {
    compared.notes_far = x_.number;
    compared.note_far = [weak = x_.weak_from_this()](const LaneNote& of_other) {
      if (const auto held = weak.lock()) held->lanes.proxy()->note(of_other);
    };
  }
  if (note) x_.lanes.proxy()->note(*note);
  return true;
}

void Launcher::take_over_kernels() {
  if (x_.kernels_to_come == nullptr || x_.kernels_to_come->result() == nullptr) return;
  const auto ordered = std::exchange(x_.kernels_to_come, nullptr);
  group_.running.pause.end();
  const Result<KernelImage>& made = *ordered->result();
  const auto loaded = made ? x_.compiled_kernels->load(made->image, made->from, *group_.device)
                           : Result<void>(made.error());
  log(made && !loaded ? LogLevel::warn : LogLevel::info, LogArea::load, x_.rank,
      loaded ? fmt::format("executable {} has compiled kernels after {} calls: {}", x_.number,
                           launches_, made->from)
             : fmt::format("the interpreter runs executable {}: {}", x_.number,
                           loaded.error().text()));
}

// Ranks that share a GPU may launch while this one waits in the driver, which they then wait for:
// they take over where all ranks load a plan.
void Launcher::take_over_in_pause() {
  if (x_.kernels_to_come == nullptr || x_.kernels_to_come->result() == nullptr) return;
  const bool there_are = static_cast<bool>(*x_.kernels_to_come->result());
  if (there_are && (!x_.options.in_turn || group_.neighbours.ranks_here > 1)) return;
  if (!there_are || group_.running.pause.has_come()) {
    take_over_kernels();
  } else {
    group_.running.pause.want();
  }
}

// Without memory for what the kernel reads, the interpreter goes on.
void Launcher::renew(BoundCall::State& call) {
  if (call.is_chosen || x_.compiled_kernels == nullptr || !x_.compiled_kernels->is_loaded()) return;
  const device::LaunchPlan before = call.launch;
  const SlotPool::Slot slot = call.slot;
  call.choose_kernel(x_.compiled_kernels.get());
  if (call.compiled.kernel == nullptr) return;
  call.launch.in_short = nullptr;
  Diagnostics ignored;
  if (call.place(*x_.on_device.slots, ignored)) return;
  call.compiled.kernel = nullptr;
  call.launch = before;
  call.slot = slot;
}

bool Launcher::launch(BoundCall::State& call, StreamHandle stream, Diagnostics& diagnostics) {
  if (group_.failure->report(diagnostics) != nullptr || !same_call(call, diagnostics)) return false;
  take_over_in_pause();
  renew(call);
  Device& device = *group_.device;
  RunningCalls& running = group_.running;
  const bool copies =
      x_.lanes.proxy() != nullptr &&
      running.copy_calls.make_room(device, stream, [&] { return group_.failure->waits_end(); });
  note(call, stream);  // first: a part of a launch that fails may run, too
  if (enqueue(call, stream, diagnostics)) {
    if (copies) running.copy_calls.launched(device, stream);
    if (running.pause.is_wanted() && x_.options.in_turn) running.pause.launched(device, stream);
    return true;
  }
  group_.fail(diagnostics);  // the others wait for this call
  return false;
}

bool Launcher::start(const BoundCall::State& call, StreamHandle stream, Diagnostics& diagnostics) {
  const CompiledCall& compiled = call.compiled;
  if (stamps_ != nullptr && compiled.kernel == nullptr) {
    device::LaunchPlan stamped = call.launch;
    stamped.stamps = stamps_;
    stamped.stamp_words = stamp_words_;
    return group_.device->launch(stamped, stream, diagnostics);
  }
  if (compiled.kernel == nullptr) return group_.device->launch(call.launch, stream, diagnostics);
  return x_.compiled_kernels->loaded().launch(compiled.kernel, call.launch, compiled.arguments(),
                                              stream, diagnostics);
}

bool Launcher::enqueue(const BoundCall::State& call, StreamHandle stream,
                       Diagnostics& diagnostics) {
  Device& device = *group_.device;
  for (const StagingCopy& c : call.before) {
    if (!device.copy(c.to, c.from, c.bytes, stream, diagnostics)) return false;
  }
  if (call.launch.blocks > 0 && !start(call, stream, diagnostics)) return false;
  if (call.slot != nullptr) x_.on_device.slots->launched(*call.slot, call.in_slot(), stream);
  for (const StagingCopy& c : call.after) {
    if (!device.copy(c.to, c.from, c.bytes, stream, diagnostics)) return false;
  }
  return true;
}

// Calls may still use its memory: that goes when they have ended.
Executable::~Executable() {
  if (state_->launcher.has_launched()) state_->group->running.retire(state_);
}

BoundCall Executable::bind(const CollectiveCall& call, Diagnostics& diagnostics) {
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
bool Executable::bind_waits(const CollectiveCall& call) { return state_->bind_waits(call); }
bool Executable::launch(const BoundCall& binding, StreamHandle stream, Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->group->one_thread, diagnostics);
  if (!visit) return false;
  if (!binding || binding.state().executable != state_.get()) {
    return refuse(diagnostics, "wrong-binding", "the call was not bound by this executable");
  }
  return state_->launcher.launch(*binding.state_, stream, diagnostics);
}
void Executable::stamp_launches(uint64_t* rows, uint32_t words) {
  precondition(rows == nullptr || words >= device::kStampHead);
  state_->launcher.stamp(rows, words);
}
const Program& Executable::plan() const { return *state_->plan; }

}  // namespace mscclc
