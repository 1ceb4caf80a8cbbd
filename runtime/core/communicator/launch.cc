// Calls of a plan that is loaded.
#include <fmt/format.h>

#include <utility>

#include "executor/stamps.h"
#include "ir/support/precondition.h"
#include "runtime/core/communicator/call/beside.h"
#include "runtime/core/communicator/executable.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

// Collective: all ranks learn of a call that is another one on some rank, and none launches it.
bool Executable::State::same_launch(const CallFacts& facts, Diagnostics& diagnostics) const {
  CallFacts own = facts;
  own.record.call = ++group->checked_launches;
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
  return same_calls(calls, "launch", group->overlaps, diagnostics);
}

// Costs a launch a few stores.
void Executable::State::note_launch(const BoundCall::State& binding, StreamHandle stream) {
  group->launched(stream);
  const FlightCall call{.executable = number,
                        .call = ++launches_,
                        .dtype = binding.launch.dtype,
                        .op = binding.launch.reduce,
                        .bytes = binding.facts.record.bytes,
                        .stream = reinterpret_cast<uint64_t>(stream)};
  group->recorder.add(call);
  if (!logs(LogLevel::info, LogArea::call)) return;
  log(LogLevel::info, LogArea::call, rank,
      fmt::format("call {} of executable {}: {} of {} bytes, {}, {}, on stream {}", call.call,
                  number, name(plan->contract.kind), call.bytes, info(call.dtype).name,
                  name(call.op), fmt::ptr(stream)));
}

// A call without ports of this rank is noted on the lanes that calls before it have used.
bool Executable::State::same_calls_far(const CallRecord& record, Diagnostics& diagnostics) {
  std::optional<LaneNote> note;
  if (!same_far(*group, *lanes.far_calls(), record, note, diagnostics)) return false;
  if (lanes.proxy() == nullptr) {
    if (note && options.in_turn && group->note_far) group->note_far(*note);
    return true;
  }
  if (options.in_turn && group->notes_far != number) {
    group->notes_far = number;
    group->note_far = [weak = weak_from_this()](const LaneNote& of_other) {
      if (const auto held = weak.lock()) held->lanes.proxy()->note(of_other);
    };
  }
  if (note) lanes.proxy()->note(*note);
  return true;
}

void Executable::State::take_over_kernels() {
  if (kernels_to_come == nullptr || kernels_to_come->result() == nullptr) return;
  const auto ordered = std::exchange(kernels_to_come, nullptr);
  group->pause.end();
  const Result<KernelImage>& made = *ordered->result();
  const auto loaded = made ? compiled_kernels->load(made->image, made->from, *group->device)
                           : Result<void>(made.error());
  log(made && !loaded ? LogLevel::warn : LogLevel::info, LogArea::load, rank,
      loaded
          ? fmt::format("executable {} has compiled kernels after {} calls: {}", number, launches_,
                        made->from)
          : fmt::format("the interpreter runs executable {}: {}", number, loaded.error().text()));
}

// Ranks that share a GPU may launch while this one waits in the driver, which they then wait for:
// they take over where all ranks load a plan.
void Executable::State::take_over_in_pause() {
  if (kernels_to_come == nullptr || kernels_to_come->result() == nullptr) return;
  const bool there_are = static_cast<bool>(*kernels_to_come->result());
  if (there_are && (!options.in_turn || group->ranks_here > 1)) return;
  if (!there_are || group->pause.has_come()) {
    take_over_kernels();
  } else {
    group->pause.want();
  }
}

// Without memory for what the kernel reads, the interpreter goes on.
void Executable::State::renew(BoundCall::State& binding) {
  if (binding.is_chosen || compiled_kernels == nullptr || !compiled_kernels->is_loaded()) return;
  const device::LaunchPlan before = binding.launch;
  const SlotPool::Slot slot = binding.slot;
  binding.choose_kernel(compiled_kernels.get());
  if (binding.compiled.kernel == nullptr) return;
  binding.launch.in_short = nullptr;
  Diagnostics ignored;
  if (binding.place(*slots, ignored)) return;
  binding.compiled.kernel = nullptr;
  binding.launch = before;
  binding.slot = slot;
}

bool Executable::State::launch(BoundCall::State& binding, StreamHandle stream,
                               Diagnostics& diagnostics) {
  if (group->failure->report(diagnostics) != nullptr) return false;
  if (group->check_calls && !same_launch(binding.facts, diagnostics)) return false;
  CallBoard* const board = uses_board_of_all() ? group->board.get() : own_board.get();
  if (board != nullptr && binding.is_call &&
      !same_beside(*group, *board, binding.facts.record, diagnostics)) {
    return false;
  }
  if (lanes.far_calls() != nullptr && binding.is_call &&
      !same_calls_far(binding.facts.record, diagnostics)) {
    return false;
  }
  take_over_in_pause();
  renew(binding);
  const bool copies = lanes.proxy() != nullptr;
  if (copies) {
    group->copy_calls.make_room(*group->device, stream,
                                [&] { return group->failure->waits_end(); });
  }
  note_launch(binding, stream);  // first: a part of a launch that fails may run, too
  if (enqueue(binding, stream, diagnostics)) {
    if (copies) group->copy_calls.launched(*group->device, stream);
    if (group->pause.is_wanted() && options.in_turn) group->pause.launched(*group->device, stream);
    return true;
  }
  group->fail(diagnostics);  // the others wait for this call
  return false;
}

bool Executable::State::start(const BoundCall::State& binding, StreamHandle stream,
                              Diagnostics& diagnostics) {
  const CompiledCall& compiled = binding.compiled;
  if (stamps_ != nullptr && compiled.kernel == nullptr) {
    device::LaunchPlan stamped = binding.launch;
    stamped.stamps = stamps_;
    stamped.stamp_words = stamp_words_;
    return group->device->launch(stamped, stream, diagnostics);
  }
  if (compiled.kernel == nullptr) return group->device->launch(binding.launch, stream, diagnostics);
  return compiled_kernels->loaded().launch(compiled.kernel, binding.launch, compiled.arguments(),
                                           stream, diagnostics);
}

bool Executable::State::enqueue(const BoundCall::State& binding, StreamHandle stream,
                                Diagnostics& diagnostics) {
  Device& device = *group->device;
  for (const StagingCopy& c : binding.before) {
    if (!device.copy(c.to, c.from, c.bytes, stream, diagnostics)) return false;
  }
  if (binding.launch.blocks > 0 && !start(binding, stream, diagnostics)) return false;
  if (binding.slot != nullptr) slots->launched(*binding.slot, binding.in_slot(), stream);
  for (const StagingCopy& c : binding.after) {
    if (!device.copy(c.to, c.from, c.bytes, stream, diagnostics)) return false;
  }
  return true;
}

// Calls may still use its memory: that goes when they have ended.
Executable::~Executable() {
  if (state_->launched()) state_->group->retire(state_);
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
  return state_->launch(*binding.state_, stream, diagnostics);
}
void Executable::stamp_launches(uint64_t* rows, uint32_t words) {
  precondition(rows == nullptr || words >= device::kStampHead);
  state_->stamp_launches(rows, words);
}
const Program& Executable::plan() const { return *state_->plan; }

}  // namespace mscclc
