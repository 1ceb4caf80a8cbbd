// What to say about a program that gets stuck: which blocks wait, and which would have to come.
#include <fmt/format.h>

#include <algorithm>

#include "ir/print/print.h"
#include "ir/report/op_error.h"
#include "passes/symbolic/symbolic_run.h"

namespace mscclc::symbolic {

/// Would this op fill the packet slot?
bool SymbolicRun::fills(uint32_t rank, const Op& op, uint64_t slot) const {
  bool filled = false;
  for (const Operand& o : program_.dsts(op)) {
    const ChunkSlices::Range range = slices_.range(op, o.count);
    each_member(rank, o, [&](const BufferCells& to) {
      if (to.slots == kNoCells) return;
      const uint64_t first = to.slots + uint64_t{o.first} * per_chunk_;
      filled |= slot >= first + range.begin && slot < first + range.end;
    });
  }
  return filled;
}

/// Would this op of `rank` give what the process waits for?
bool SymbolicRun::serves(uint32_t rank, const Op& op, const Process& waiting) const {
  const OpInfo& row = info(op.kind);
  if (waiting.wait == Wait::packets) return row.moves_data() && fills(rank, op, waiting.cell);
  const Operand& wanted = program_.dsts(waiting_op(waiting))[waiting.operand];
  if (waiting.wait == Wait::semaphore) {
    return rank == waiting.rank && row.has(kReleases) &&
           std::ranges::any_of(program_.dsts(op),
                               [&](const Operand& o) { return o.first == wanted.first; });
  }
  const Channel& end = program_.ranks[waiting.rank].channels[wanted.channel];
  return rank == end.peer && row.has(kSignals) &&
         std::ranges::any_of(program_.dsts(op),
                             [&](const Operand& o) { return o.channel == end.partner; });
}

/// A block that has not come to the barrier, at the op where it stands.
SymbolicRun::Pending SymbolicRun::find_absent(const Process& process) const {
  const Op& barrier = waiting_op(process);
  for (const Operand& o : program_.dsts(barrier)) {
    const Process& other = processes_[first_process_[process.rank] + o.first];
    if (other.op == other.end) continue;
    const Op& op = waiting_op(other);
    if (other.wait != Wait::barrier ||
        !std::ranges::equal(program_.dsts(op), program_.dsts(barrier))) {
      return {process.rank, &op};
    }
  }
  return {};
}

SymbolicRun::Pending SymbolicRun::find_server(const Process& waiting) const {
  if (waiting.wait == Wait::barrier) return find_absent(waiting);
  for (const Process& process : processes_) {
    const std::vector<Op>& ops = program_.ranks[process.rank].ops;
    for (uint32_t op = process.op; op < process.end; ++op) {
      if (serves(process.rank, ops[op], waiting)) return {process.rank, &ops[op]};
    }
  }
  return {};
}

/// The op that has emptied the sentinel slot that a process waits for, if one has.
SymbolicRun::Pending SymbolicRun::find_reader(const Process& waiting) const {
  if (waiting.wait != Wait::packets) return {};
  const std::vector<Op>& ops = program_.ranks[waiting.rank].ops;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const bool done = i < processes_[first_process_[waiting.rank] + ops[i].block].op;
    if (done && info(ops[i].kind).has(kPolls) && empties(waiting.rank, ops[i], waiting.cell)) {
      return {waiting.rank, &ops[i]};
    }
  }
  return {};
}

/// Does this op empty the packet slot when it has read it?
bool SymbolicRun::empties(uint32_t rank, const Op& op, uint64_t slot) const {
  return std::ranges::any_of(program_.srcs(op), [&](const Operand& o) {
    if (o.channel != kNone) return false;
    const BufferCells& from = place(rank, o.buffer);
    if (from.slots == kNoCells || !from.sentinel) return false;
    const ChunkSlices::Range range = slices_.range(op, o.count);
    const uint64_t first = from.slots + uint64_t{o.first} * per_chunk_;
    return slot >= first + range.begin && slot < first + range.end;
  });
}

std::string SymbolicRun::explain(const Process& process, const Pending& server) const {
  static constexpr std::string_view kFor[] = {"", "a signal", "a release", "the others", "packets"};
  static constexpr std::string_view kInVain[] = {
      "", "no op signals it any more", "no op releases it any more", "the other blocks have ended",
      "no op puts packets there any more"};
  const size_t wait = static_cast<size_t>(process.wait);
  std::string text = fmt::format(
      "{} waits for {}", describe_op(program_, process.rank, waiting_op(process)), kFor[wait]);
  const Pending reader = find_reader(process);
  if (server.op == nullptr && reader.op != nullptr) {
    return fmt::format("{}; {} has emptied the slot: sentinel packets can be read once", text,
                       describe_op(program_, reader.rank, *reader.op));
  }
  if (server.op == nullptr) return fmt::format("{}; {}", text, kInVain[wait]);
  text += fmt::format(", which needs {}", describe_op(program_, server.rank, *server.op));
  const Span span = span_of(program_, *server.op);
  if (span.valid()) text += fmt::format(" at {}:{}", span.line, span.column);
  return text;
}

void SymbolicRun::report_stuck(Diagnostics& diagnostics) const {
  constexpr size_t kMaxNotes = 8;
  struct Stuck {
    const Process* process;
    Pending server;
  };
  std::vector<Stuck> stuck;
  size_t count = 0;
  for (const Process& process : processes_) {
    if (process.op == process.end) continue;
    ++count;
    if (stuck.size() < 8 * kMaxNotes) stuck.push_back({&process, find_server(process)});
  }
  // Those that no op will serve are the cause, the others follow.
  std::stable_partition(stuck.begin(), stuck.end(),
                        [](const Stuck& s) { return s.server.op == nullptr; });
  const Op& first = waiting_op(*stuck[0].process);
  Note place = op_note(program_, first, "");
  Diagnostic d;
  d.code = "stuck";
  d.span = place.span;
  d.file = std::move(place.file);
  d.message = count == 1
                  ? std::string("the program gets stuck: a thread block waits forever")
                  : fmt::format("the program gets stuck: {} thread blocks wait forever", count);
  for (size_t i = 0; i < std::min(stuck.size(), kMaxNotes); ++i) {
    const Process& process = *stuck[i].process;
    d.notes.push_back(op_note(program_, waiting_op(process), explain(process, stuck[i].server)));
  }
  d.missing = missing_edge(*stuck[0].process, stuck[0].server);
  diagnostics.add(std::move(d));
}

/// What the block waits for, and what would have to give it, if anything can.
MissingEdge SymbolicRun::missing_edge(const Process& waiting, const Pending& server) const {
  static constexpr MissingKind kKinds[] = {MissingKind::none, MissingKind::signal,
                                           MissingKind::semaphore, MissingKind::none,
                                           MissingKind::packets};
  static constexpr const char* kGives[] = {"", "signals", "releases", "arrives", "writes"};
  const size_t wait = static_cast<size_t>(waiting.wait);
  const Op& op = waiting_op(waiting);
  MissingEdge edge;
  edge.kind = kKinds[wait];
  edge.second = access_of(program_, waiting.rank, op, "waits");
  if (server.op != nullptr) {
    edge.first = access_of(program_, server.rank, *server.op, kGives[wait]);
  } else if (waiting.wait == Wait::signal) {
    edge.first.does = kGives[wait];
    const Operand& wanted = program_.dsts(op)[waiting.operand];
    edge.first.rank = program_.ranks[waiting.rank].channels[wanted.channel].peer;
  }
  return edge;
}

}  // namespace mscclc::symbolic
