// Makes a call ready to be launched: its pieces, each with a bound call of the plan, and the copies
// around it.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/collectives/arguments.h"
#include "runtime/core/collectives/state.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/result_kind.h"

namespace mscclc {

CollectiveCall Collectives::State::piece_of(const CollectiveCall& planned,
                                            const CallRange& range) const {
  CollectiveCall piece = mscclc::piece_of(planned, range, communicator_.size());
  piece.any_order = any_order_;
  return piece;
}

/// What stays on this rank: all of it with one rank, and what a rank sends to itself.
void Collectives::State::copy_here(const CollectiveCall& call, ReadyCall::State& ready) const {
  // All counts of an alltoallv of several ranks are 0 here.
  if (call.kind == CollectiveKind::alltoallv && communicator_.size() > 1) return;
  const LocalCopy copy = local_copy(call);
  if (copy.bytes == 0 || copy.from == copy.to) return;
  ready.pieces.push_back({{}, {{copy.to, copy.from, copy.bytes}}, {}});
}

/// Gives a planned call its buffers, where they are not the caller's.
bool Collectives::State::place(const CollectiveCall& call, const CallRange& range,
                               CollectiveCall& planned, ReadyPiece& ready,
                               Diagnostics& diagnostics) {
  if (call.kind == CollectiveKind::barrier) {
    uint8_t* const word = own_.take(communicator_.device(), sizeof(int32_t), diagnostics);
    planned.input = planned.output = word;
    return word != nullptr;
  }
  if (call.kind != CollectiveKind::alltoallv) return true;
  const uint64_t side = range.count * info(planned.dtype).bytes * communicator_.size();
  uint8_t* const memory = own_.take(communicator_.device(), 2 * side, diagnostics);
  if (memory == nullptr) return false;
  planned.input = memory;
  planned.output = memory + side;
  add_row_copies(call, range, {memory, memory + side}, communicator_.rank(), communicator_.size(),
                 ready);
  return true;
}

std::optional<RegisteredCalls::Key> Collectives::State::key_of(const CollectiveCall& piece,
                                                               const Executable& executable,
                                                               Diagnostics& diagnostics) const {
  const auto input = registered_.find(piece.input), output = registered_.find(piece.output);
  if (input && output) {
    return RegisteredCalls::Key{&executable,      piece.bytes,     piece.dtype, piece.op,
                                piece.accumulate, piece.row_pitch, *input,      *output};
  }
  diagnostics.error("bad-call", {},
                    fmt::format("{}: the call says that its buffers are registered; the {} is not",
                                name(piece.kind), input ? "output" : "input"));
  return std::nullopt;
}

/// Where other ranks do not bind with this one, they go on, and wait for its part in the call.
BoundCall Collectives::State::bind_alone(const CollectiveCall& piece, Executable& executable,
                                         Diagnostics& diagnostics) {
  Diagnostics problems;
  BoundCall bound = executable.bind(piece, problems);
  if (!bound && lacks_memory(problems)) communicator_.abort(problems);
  for (const Diagnostic& d : problems.all()) diagnostics.add(d);
  return bound;
}

BoundCall Collectives::State::bind(const CollectiveCall& piece, Executable& executable,
                                   Diagnostics& diagnostics) {
  if (!executable.binds_together()) return bind_alone(piece, executable, diagnostics);
  const auto key = key_of(piece, executable, diagnostics);
  if (!key) {
    communicator_.abort(diagnostics);  // the others may wait in bind()
    return {};
  }
  BoundCall bound = registered_.call(*key);
  if (bound) return bound;
  bound = executable.bind_waits(piece) ? executable.bind(piece, diagnostics)
                                       : bind_alone(piece, executable, diagnostics);
  if (bound) registered_.keep(*key, bound);
  return bound;
}

bool Collectives::State::prepare_piece(const CollectiveCall& call, const CollectiveCall& planned,
                                       const CallRange& range, ReadyCall::State& ready,
                                       Diagnostics& diagnostics) {
  CollectiveCall piece = piece_of(planned, range);
  if (call.kind == CollectiveKind::alltoallv) piece.row_pitch = 0;  // rows of our own
  ReadyPiece& made = ready.pieces.emplace_back();
  if (!place(call, range, piece, made, diagnostics)) {
    communicator_.abort(diagnostics);  // the others wait for this call
    return false;
  }
  made.bound = bind(piece, *ready.executable, diagnostics);
  ready.unlaunched.add();
  return static_cast<bool>(made.bound);
}

// The others may have picked a plan, and wait for this rank to load it: they learn why it does not.
bool Collectives::State::no_rank_picks(const CollectiveCall& wanted, StreamHandle stream,
                                       Diagnostics& why) {
  const bool capturing = communicator_.device().is_capturing(stream);
  return communicator_.no_rank_loads(
      {.call = text_of(wanted, communicator_.rank(), capturing), .calls_ahead = *unlaunched_ + 1},
      why);
}

PlanChoice Collectives::State::pick(const PlannedCall& wanted, StreamHandle stream,
                                    Diagnostics& diagnostics) {
  Diagnostics problems;
  PlanChoice choice = chooser_.pick(wanted, stream, problems);
  if (choice.picked == nullptr && may_be_of_one_rank(problems)) {
    (void)no_rank_picks(wanted, stream, problems);
  }
  for (const Diagnostic& d : problems.all()) diagnostics.add(d);
  return choice;
}

bool Collectives::State::prepare(const CollectiveCall& call, const PlanChoice* chosen,
                                 StreamHandle stream, ReadyCall::State& ready,
                                 Diagnostics& diagnostics) {
  const uint32_t ranks = communicator_.size();
  if (!check_arguments(call, communicator_.rank(), ranks, BuffersOf::call, diagnostics))
    return false;
  ready.owner = this;
  ready.stream = stream;
  const std::optional<PlannedCall> wanted = planned(call);
  if (!wanted) {
    copy_here(call, ready);
    return true;
  }
  const PlanChoice choice = chosen != nullptr ? *chosen : pick(*wanted, stream, diagnostics);
  if (choice.picked == nullptr) return false;
  CollectiveCall at_once = *wanted;
  at_once.count = choice.count;
  ready.executable = loaded_.find(*choice.picked, chooser_.need(at_once));
  if (ready.executable == nullptr) {
    log(LogLevel::info, LogArea::load, communicator_.rank(),
        fmt::format("{} of {} bytes takes {}: {}", name(wanted->kind),
                    message_bytes(at_once, ranks), choice.picked->name, choice.picked->why));
    const bool capturing = communicator_.device().is_capturing(stream);
    ready.executable = loaded_.load(*choice.picked, chooser_.need(at_once),
                                    text_of(call, communicator_.rank(), capturing),
                                    ready.unlaunched.of_all() + 1, diagnostics);
  }
  if (ready.executable == nullptr) return false;
  const std::vector<CallRange> ranges = ranges_of(*wanted, choice.count);
  return std::all_of(ranges.begin(), ranges.end(), [&](const CallRange& range) {
    return prepare_piece(call, *wanted, range, ready, diagnostics);
  });
}

ReadyCall Collectives::State::prepare(const CollectiveCall& call, const PlanChoice* chosen,
                                      StreamHandle stream, Diagnostics& diagnostics) {
  const OneThread::Visit visit(*one_thread_, diagnostics);
  auto ready = std::make_shared<ReadyCall::State>(unlaunched_);
  if (!visit || !prepare(call, chosen, stream, *ready, diagnostics)) return {};
  return ReadyCall(std::move(ready));
}

}  // namespace mscclc
