// Makes a call ready to be launched: its pieces, each with a bound call of the plan, and the copies
// around it.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/collectives/arguments.h"
#include "runtime/core/collectives/state.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

std::vector<CallRange> Collectives::State::ranges_of(const CollectiveCall& planned,
                                                     const PlanChoice& choice) const {
  std::vector<CallRange> ranges;
  for (uint64_t first = 0; first < planned.count; first += choice.count) {
    ranges.push_back({first, std::min(choice.count, planned.count - first)});
  }
  return ranges;
}

CollectiveCall Collectives::State::piece_of(const CollectiveCall& planned,
                                            const CallRange& range) const {
  const uint64_t width = info(planned.dtype).bytes;
  CollectiveCall piece = planned;
  piece.count = range.count;
  if (piece.input != nullptr) {
    piece.input = static_cast<const uint8_t*>(piece.input) + range.first * width;
  }
  if (piece.output != nullptr) {
    piece.output = static_cast<uint8_t*>(piece.output) + range.first * width;
  }
  piece.bytes = message_bytes(piece, communicator.size());
  const bool apart = has_rows(planned.kind) && range.count < planned.count;
  piece.row_pitch = apart ? planned.count * width : 0;
  piece.any_order = any_order;
  return piece;
}

/// What stays on this rank: all of it with one rank, and what a rank sends to itself.
void Collectives::State::copy_here(const CollectiveCall& call, ReadyCall::State& ready) const {
  // All counts of an alltoallv of several ranks are 0 here.
  if (call.kind == CollectiveKind::alltoallv && communicator.size() > 1) return;
  const LocalCopy copy = local_copy(call);
  if (copy.bytes == 0 || copy.from == copy.to) return;
  ready.pieces.push_back({{}, {{copy.to, copy.from, copy.bytes}}, {}});
}

// The rows of a piece of alltoallv lie in the layer's memory as long as the longest.
void Collectives::State::place_rows(const CollectiveCall& call, const CallRange& range,
                                    uint8_t* sent, uint8_t* received, ReadyPiece& ready) const {
  const uint64_t width = info(call.dtype).bytes, row = range.count * width;
  const uint32_t ranks = communicator.size(), rank = communicator.rank();
  const auto in_range = [&](uint64_t count) {
    return std::min(count - std::min(count, range.first), range.count);
  };
  uint64_t next_in = 0, next_out = 0;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    const uint64_t out = call.counts[rank * ranks + peer], in = call.counts[peer * ranks + rank];
    const uint64_t from = call.input_offsets.empty() ? next_in : call.input_offsets[peer];
    const uint64_t to = call.output_offsets.empty() ? next_out : call.output_offsets[peer];
    if (const uint64_t some = in_range(out); some > 0) {
      ready.before.push_back(
          {sent + peer * row,
           static_cast<const uint8_t*>(call.input) + (from + range.first) * width, some * width});
    }
    if (const uint64_t some = in_range(in); some > 0) {
      ready.after.push_back({static_cast<uint8_t*>(call.output) + (to + range.first) * width,
                             received + peer * row, some * width});
    }
    next_in += out;
    next_out += in;
  }
}

/// Gives a planned call its buffers, where they are not the caller's.
bool Collectives::State::place(const CollectiveCall& call, const CallRange& range,
                               CollectiveCall& planned, ReadyPiece& ready,
                               Diagnostics& diagnostics) {
  if (call.kind == CollectiveKind::barrier) {
    uint8_t* const word = own.take(communicator.device(), sizeof(int32_t), diagnostics);
    planned.input = planned.output = word;
    return word != nullptr;
  }
  if (call.kind != CollectiveKind::alltoallv) return true;
  const uint64_t side = range.count * info(planned.dtype).bytes * communicator.size();
  uint8_t* const memory = own.take(communicator.device(), 2 * side, diagnostics);
  if (memory == nullptr) return false;
  planned.input = memory;
  planned.output = memory + side;
  place_rows(call, range, memory, memory + side, ready);
  return true;
}

std::optional<RegisteredCalls::Key> Collectives::State::key_of(const CollectiveCall& piece,
                                                               const Executable& executable,
                                                               Diagnostics& diagnostics) const {
  const auto input = registered.find(piece.input), output = registered.find(piece.output);
  if (input && output) {
    return RegisteredCalls::Key{&executable,      piece.bytes,     piece.dtype, piece.op,
                                piece.accumulate, piece.row_pitch, *input,      *output};
  }
  diagnostics.error("bad-call", {},
                    fmt::format("{}: the call says that its buffers are registered; the {} is not",
                                name(piece.kind), input ? "output" : "input"));
  return std::nullopt;
}

BoundCall Collectives::State::bind(const CollectiveCall& piece, Executable& executable,
                                   Diagnostics& diagnostics) {
  if (!executable.binds_together()) return executable.bind(piece, diagnostics);
  const auto key = key_of(piece, executable, diagnostics);
  if (!key) {
    communicator.abort(diagnostics);  // the others may wait in bind()
    return {};
  }
  BoundCall bound = registered.call(*key);
  if (bound) return bound;
  bound = executable.bind(piece, diagnostics);
  if (bound) registered.keep(*key, bound);
  return bound;
}

bool Collectives::State::prepare_piece(const CollectiveCall& call, const CollectiveCall& planned,
                                       const CallRange& range, ReadyCall::State& ready,
                                       Diagnostics& diagnostics) {
  CollectiveCall piece = piece_of(planned, range);
  if (call.kind == CollectiveKind::alltoallv) piece.row_pitch = 0;  // rows of our own
  ReadyPiece& made = ready.pieces.emplace_back();
  if (!place(call, range, piece, made, diagnostics)) return false;
  made.bound = bind(piece, *ready.executable, diagnostics);
  ready.unlaunched.add();
  return static_cast<bool>(made.bound);
}

bool Collectives::State::prepare(const CollectiveCall& call, const PlanChoice* chosen,
                                 StreamHandle stream, ReadyCall::State& ready,
                                 Diagnostics& diagnostics) {
  const uint32_t ranks = communicator.size();
  if (!check_arguments(call, communicator.rank(), ranks, diagnostics)) return false;
  ready.owner = this;
  ready.stream = stream;
  const std::optional<PlannedCall> planned = planned_call(call, communicator.rank(), ranks);
  if (!planned) {
    copy_here(call, ready);
    return true;
  }
  const PlanChoice choice = chosen != nullptr ? *chosen : pick(*planned, stream, diagnostics);
  if (choice.picked == nullptr) return false;
  CollectiveCall at_once = *planned;
  at_once.count = choice.count;
  ready.executable = loaded.find(*choice.picked, need(at_once));
  if (ready.executable == nullptr) {
    log(LogLevel::info, LogArea::load, communicator.rank(),
        fmt::format("{} of {} bytes takes {}: {}", name(planned->kind),
                    message_bytes(at_once, ranks), choice.picked->name, choice.picked->why));
    const bool capturing = communicator.device().is_capturing(stream);
    ready.executable =
        loaded.load(*choice.picked, need(at_once), text_of(call, communicator.rank(), capturing),
                    ready.unlaunched.of_all() + 1, diagnostics);
  }
  if (ready.executable == nullptr) return false;
  const std::vector<CallRange> ranges = ranges_of(*planned, choice);
  return std::all_of(ranges.begin(), ranges.end(), [&](const CallRange& range) {
    return prepare_piece(call, *planned, range, ready, diagnostics);
  });
}

ReadyCall Collectives::State::prepare(const CollectiveCall& call, const PlanChoice* chosen,
                                      StreamHandle stream, Diagnostics& diagnostics) {
  const OneThread::Visit visit(*one_thread, diagnostics);
  auto ready = std::make_shared<ReadyCall::State>(unlaunched);
  if (!visit || !prepare(call, chosen, stream, *ready, diagnostics)) return {};
  return ReadyCall(std::move(ready));
}

}  // namespace mscclc
