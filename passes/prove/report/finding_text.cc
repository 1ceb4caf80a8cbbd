#include "passes/prove/report/finding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "ir/print/print.h"
#include "ir/print/row_names.h"
#include "ir/report/op_error.h"
#include "passes/prove/report/missing_edge.h"

namespace mscclc::proof {

FindingText::Origin FindingText::origin(const Event& e) const {
  const uint32_t rank = process(e).rank;
  const Part& part = system_.part_of_op(rank, e.op);
  return {part, part.local[rank], part.rank(rank).ops[e.op - part.first_op[rank]]};
}

std::string FindingText::chunk(const ChunkName& c) const {
  const Part& part = system_.part_of_buffer(c.rank, c.buffer);
  const uint32_t buffer = system_.is_callers(c.buffer)
                              ? c.buffer - part.input
                              : c.buffer - part.first_scratch[c.rank] + kFirstScratch;
  const Buffer& named = part.rank(c.rank).buffers[buffer];
  return fmt::format("{} of rank {}", run_text(*part.program, named, c.chunk, 1), c.rank);
}

std::string FindingText::who(const Event& e) const {
  const Process& p = process(e);
  if (p.kind == ProcessKind::caller) return fmt::format("the caller of rank {}", p.rank);
  if (p.kind == ProcessKind::flag) {
    return fmt::format("the other side of '{}'{}", flag_name(e),
                       e.op == kNone ? "" : ", once notified,");
  }
  const Origin o = origin(e);
  std::string text = fmt::format("'{}'", print_op(o.program(), o.rank, o.op));
  if (p.kind == ProcessKind::port_reader) return "the port (later than the block), for " + text;
  if (p.kind == ProcessKind::port_writer) return "the port, for " + text;
  return text;
}

std::string FindingText::flag_name(const Event& e) const {
  return flag_name_of(program_, process(e).index);
}

std::string FindingText::place(const Event& e) const {
  if (e.op == kNone) return "";
  const Origin o = origin(e);
  return fmt::format(" ({}{})", print_place(o.program(), o.rank, o.op), of_plan(e));
}

/// ", of 'ring.mscl'", and which rank of the world that is, if there are several plans.
std::string FindingText::of_plan(const Event& e) const {
  if (!system_.joint()) return "";
  const Origin o = origin(e);
  const uint32_t world = process(e).rank;
  return world == o.rank
             ? fmt::format(", of '{}'", o.part.name)
             : fmt::format(", of '{}', which is rank {} of the world", o.part.name, world);
}

std::string FindingText::calls_apart() const {
  const int64_t apart = int64_t{finding_.second.call} - finding_.first.call;
  if (apart == 0) return "";
  if (apart > 0) return apart == 1 ? "one call later, " : fmt::format("{} calls later, ", apart);
  return apart == -1 ? "one call earlier, " : fmt::format("{} calls earlier, ", -apart);
}

std::string FindingText::does(const Event& e, bool writes) const {
  if (process(e).kind == ProcessKind::caller) return "may change";
  if (process(e).kind == ProcessKind::flag) return writes ? "may still be writing" : "reads";
  return writes ? "writes" : "reads";
}

Diagnostic& FindingText::error(const char* code, const std::string& message) {
  const Event& at = finding_.second.op != kNone ? finding_.second : finding_.first;
  if (at.op == kNone) return with_edge(diagnostics_.error(code, {}, message));
  const Origin o = origin(at);
  Diagnostic& d = op_error(diagnostics_, code, o.program(), o.rank, placed(at), message);
  note_fused(d, at);
  return with_edge(d);
}

/// The two accesses, each at the place of the operands that are meant.
Diagnostic& FindingText::with_edge(Diagnostic& d) const {
  using enum Finding::Kind;
  static constexpr Finding::Kind kOfChunks[] = {race, slot_twice, no_packets, wrong_value};
  if (std::ranges::find(kOfChunks, finding_.kind) == std::end(kOfChunks)) return d;
  const bool unwritten = finding_.reader.op != kNone;
  d.missing =
      missing_edge(system_, finding_, chunk(unwritten ? finding_.unwritten : finding_.chunk));
  place_access(d.missing->first, finding_.first);
  place_access(d.missing->second, unwritten ? finding_.reader : finding_.second);
  return d;
}

void FindingText::place_access(EdgeEnd& access, const Event& e) const {
  if (e.op == kNone || access.op.empty()) return;
  Note at = op_note(origin(e).program(), placed(e), "");
  access.span = at.span;
  access.file = std::move(at.file);
  access.loop = loop_values(origin(e).program(), placed(e));
}

void FindingText::note(Diagnostic& d, const Event& e, const std::string& text) const {
  if (e.op == kNone) {
    d.notes.push_back({text});
  } else {
    d.notes.push_back(op_note(origin(e).program(), placed(e), text));
  }
}

/// The op with the one location that the finding is about: of a fused op with a location for each
/// pair of operands, that of the pair.
Op FindingText::placed(const Event& e) const {
  Op op = origin(e).op;
  if (const uint32_t pair = pair_of(e, op); pair != kNone)
    op.locations = {op.locations.first + pair, 1};
  return op;
}

uint32_t FindingText::pair_of(const Event& e, const Op& op) const {
  if (!info(op.kind).srcs.slot[0].pairwise || op.locations.count != op.dsts) return kNone;
  if (&e == &finding_.reader) return finding_.reader_pair;
  if (finding_.kind != Finding::Kind::race) return kNone;
  return &e == &finding_.first ? finding_.first_pair : finding_.second_pair;
}

/// Where else a fused op comes from, if nothing says which of its places is meant.
void FindingText::note_fused(Diagnostic& d, const Event& e) const {
  const Origin o = origin(e);
  if (o.op.locations.count < 2 || pair_of(e, o.op) != kNone) return;
  std::vector<uint32_t> named = {o.program().locations[o.op.locations.first].site};
  for (uint32_t i = 1; i < o.op.locations.count; ++i) {
    Op part = o.op;
    part.locations = {o.op.locations.first + i, 1};
    const uint32_t site = o.program().locations[part.locations.first].site;
    if (std::ranges::find(named, site) != named.end()) continue;
    named.push_back(site);
    d.notes.push_back(op_note(o.program(), part, "that op has been fused with this one"));
  }
}

}  // namespace mscclc::proof
