#include "passes/prove/report/missing_edge.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/program/flag_regions.h"
#include "ir/report/op_error.h"

namespace mscclc::proof {
namespace {

/// Where a signal publishes the op.
std::string after(const Process& p) {
  return p.kind == ProcessKind::port_writer ? "through the same port, after the put"
                                            : "after its op and a 'sync'";
}

/// An event of the prover as an access.
EdgeEnd access(const System& system, const Event& e, const std::string& does) {
  if (e.process == kNone) return {};
  const Process& p = system.processes()[e.process];
  EdgeEnd found;
  if (e.op != kNone && p.kind != ProcessKind::caller) {
    const Part& part = system.part_of_op(p.rank, e.op);
    const Op& op = part.rank(p.rank).ops[e.op - part.first_op[p.rank]];
    found = access_of(*part.program, part.local[p.rank], op, does);
  }
  found.does = does;
  found.rank = p.rank;
  found.call = e.call;
  if (p.kind != ProcessKind::block) found.block.clear();
  return found;
}

std::string verb(const System& system, const Event& e, bool writes) {
  const ProcessKind kind = system.processes()[e.process].kind;
  const bool caller = kind == ProcessKind::caller || (kind == ProcessKind::flag && writes);
  return caller ? "may change" : writes ? "writes" : "reads";
}

Remedy from_port(const Process& a, const Process& b) {
  if (a.rank == b.rank) {
    return {MissingKind::flush,
            "a 'flush' after the put is missing, or a reply from the peer that the data has come"};
  }
  return {MissingKind::flush,
          fmt::format("rank {} must learn, after a 'flush', that the source may change", b.rank)};
}

Remedy with_caller(const Process& a, const Process& b) {
  if (b.kind == ProcessKind::caller) {
    return {MissingKind::signal,
            fmt::format("rank {} may leave the call before: it must wait for a signal, not "
                        "relaxed, that rank {} sends {}",
                        b.rank, a.rank, after(a))};
  }
  return {MissingKind::signal,
          fmt::format("rank {} may not have entered the call: rank {} must wait for a signal from "
                      "it first",
                      a.rank, b.rank)};
}

/// The other side of a flag writes a region of the input, or reads one of the output.
Remedy with_flag(const Program& program, const Process& flag, const Process& other,
                 bool of_output) {
  const std::string name = flag_name_of(program, flag.index);
  if (of_output) {
    return {MissingKind::signal,
            fmt::format("'notify {}' must come after all that is written there in this call, and "
                        "know of it: by a wait, or an acquire, and a 'sync'",
                        name)};
  }
  const std::string by_signal =
      flag.rank == other.rank
          ? ""
          : fmt::format(" at rank {}, which then signals rank {}", flag.rank, other.rank);
  return {MissingKind::signal, fmt::format("'await {}' before it{}", name, by_signal)};
}

}  // namespace

std::string flag_name_of(const Program& program, uint32_t number) {
  uint32_t array = 0;
  while (number >= program.flags[array].count) number -= program.flags[array++].count;
  return flag_text(program, array, number);
}

std::string copies_text(uint32_t copies) {
  return fmt::format("use {} copies of the buffer in turn (copies: {})", copies, copies);
}

Remedy remedy(const System& system, const Finding& finding) {
  const Process& a = system.processes()[finding.first.process];
  const Process& b = system.processes()[finding.second.process];
  const bool blocks = a.kind == ProcessKind::block && b.kind == ProcessKind::block;
  if (a.kind == ProcessKind::flag) {
    return with_flag(system.program(), a, b, !finding.first_writes);
  }
  if (b.kind == ProcessKind::flag) {
    return with_flag(system.program(), b, a, !finding.second_writes);
  }
  if (blocks && finding.first.process == finding.second.process) {
    return {MissingKind::sync,
            "the threads of the block do not meet between the two: a 'sync' is missing"};
  }
  if (a.kind == ProcessKind::port_reader) return from_port(a, b);
  if (a.rank == b.rank && blocks) {
    return {
        MissingKind::semaphore,
        fmt::format("tb {} must 'acquire' what tb {} has released after its op", b.index, a.index)};
  }
  if (a.kind == ProcessKind::caller || b.kind == ProcessKind::caller) return with_caller(a, b);
  const std::string copies = finding.copies == 0 ? "" : ", or " + copies_text(finding.copies);
  if (a.rank == b.rank) {
    return {
        MissingKind::signal,
        fmt::format(
            "rank {} must wait for a signal, not relaxed, by which rank {} says that it is done "
            "with the first{}",
            b.rank, finding.chunk.rank, copies)};
  }
  return {MissingKind::signal,
          fmt::format("rank {} must wait for a signal, not relaxed, that rank {} sends {}{}",
                      b.rank, a.rank, after(a), copies)};
}

MissingEdge missing_edge(const System& system, const Finding& finding, const std::string& chunk) {
  MissingEdge edge;
  edge.chunk = chunk;
  edge.copies = finding.copies;
  switch (finding.kind) {
    case Finding::Kind::race:
      edge.kind = remedy(system, finding).kind;
      edge.first = access(system, finding.first, verb(system, finding.first, finding.first_writes));
      edge.second =
          access(system, finding.second, verb(system, finding.second, finding.second_writes));
      break;
    case Finding::Kind::slot_twice:
      edge.kind = MissingKind::packets;
      edge.first = access(system, finding.first, "writes");
      edge.second = access(system, finding.second, "writes");
      break;
    case Finding::Kind::no_packets:
      edge.kind = MissingKind::packets;
      edge.second = access(system, finding.first, "sends");
      break;
    case Finding::Kind::wrong_value:
      edge.first = access(system, finding.first, "writes");
      edge.second = access(system, finding.reader, "reads");
      break;
    default:
      break;
  }
  const uint32_t earliest = std::min(edge.first.call, edge.second.call);
  edge.first.call -= earliest;
  edge.second.call -= earliest;
  return edge;
}

MissingEdge unbalanced_edge(const Program& program, const Finding& finding) {
  const bool channel = finding.channel != kNone, gives = finding.surplus > 0;
  const Effects effect = channel ? gives ? kSignals : kWaits : gives ? kReleases : kAcquires;
  const uint32_t counter = channel ? finding.channel : finding.semaphore;
  const char* does = channel ? gives ? "signals" : "waits" : gives ? "releases" : "acquires";
  MissingEdge edge;
  edge.kind = channel ? MissingKind::signal : MissingKind::semaphore;
  uint32_t rank = finding.rank, wanted = counter;
  if (channel && !gives) {  // the waits are those of the other end
    const Channel& end = program.ranks[rank].channels[counter];
    if (end.partner == kNone) return edge;
    rank = end.peer;
    wanted = end.partner;
  }
  for (const Op& op : program.ranks[rank].ops) {
    if (!info(op.kind).has(effect)) continue;
    const bool uses = std::ranges::any_of(program.dsts(op), [&](const Operand& o) {
      return (channel ? o.channel : o.first) == wanted;
    });
    if (!uses) continue;
    (gives ? edge.first : edge.second) = access_of(program, rank, op, does);
    break;
  }
  return edge;
}

}  // namespace mscclc::proof
