// What processes of the explorer do to memory: accesses and races, ports, callers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/print/print.h"
#include "ir/program/applied.h"
#include "ir/report/op_error.h"
#include "tests/explore/explorer.h"

namespace mscclc::explorer {

using Kind = Step::Kind;

std::string Explorer::describe(uint16_t event) const {
  for (const Process& p : model_.processes) {
    for (const Step& step : p.steps) {
      if (step.event != event % model_.events || step.kind == Kind::enter) continue;
      const std::string call = fmt::format("call {}", event / model_.events);
      if (step.kind == Kind::begin || step.kind == Kind::end) {
        return fmt::format("{} of rank {}'s caller", call, p.rank);
      }
      if (step.kind == Kind::raise || step.kind == Kind::take) {
        return fmt::format("{} of the other side of a flag of rank {}", call, p.rank);
      }
      if (step.kind != Kind::access && step.kind != Kind::post) continue;
      return fmt::format("'{}' ({}, {})", print_op(program_, p.rank, *step.op),
                         print_place(program_, p.rank, *step.op), call);
    }
  }
  return "?";
}

void Explorer::fail_race(uint16_t earlier, uint16_t later, uint32_t cell) {
  fail(Verdict::race, fmt::format("{} and {} are not ordered (cell {})", describe(earlier),
                                  describe(later), cell));
}

/// What the rank that wrote packets knew when it began the call: takers know it, too.
const Events& Explorer::entry_of_writer(State& s, uint16_t writer) const {
  return entry(s, model_.rank_of_event[writer % model_.events], writer / model_.events);
}

// ---- accesses

bool Explorer::over(const State& s, uint16_t writer, uint16_t event, const Knowledge& knows) {
  return writer == kNoEvent || writer == event || s.ended[writer] || knows.done[writer];
}

bool Explorer::read(State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  CellState& c = s.cells[cell];
  Events also = c.also;
  also.reset(event);
  const Events known = also & (s.ended | knows.done);
  const bool sure = over(s, c.writer, event, knows);
  const bool all = sure && also == known;
  if (!sure && known.none()) {
    fail_race(c.writer, event, cell);
  } else {
    found_.same_bits |= !all;
  }
  c.readers.set(event);
  return all;
}

/// Has the event polled the cell where it has no data to move, and nowhere else? REQUIRES: it has
/// read the cell.
bool Explorer::polled_hollow(uint16_t event, uint32_t cell) const {
  const uint32_t call = event / model_.events;
  const auto reads = [&](const Element& e) {
    return std::ranges::any_of(e.srcs, [&](const Cell& c) { return c.at(call) == cell; });
  };
  return std::ranges::all_of(model_.of_event[event % model_.events]->elements,
                             [&](const Element& e) { return e.hollow || !reads(e); });
}

/// An access of the cell that a store would be in no order with; kNoEvent if there is none.
uint16_t Explorer::conflict(const State& s, uint32_t cell, uint16_t event,
                            const Knowledge& knows) const {
  const CellState& c = s.cells[cell];
  if (!over(s, c.writer, event, knows)) return c.writer;
  Events open = c.readers & ~(s.ended | s.served | knows.done | knows.read);
  const Events hollow = open & knows.hollow;
  for (uint16_t r = 0; hollow.any() && r < kMaxEvents; ++r) {
    if (hollow[r] && polled_hollow(r, cell)) open.reset(r);
  }
  open |= c.also & ~(s.ended | knows.done);
  open.reset(event);
  for (uint16_t r = 0; open.any() && r < kMaxEvents; ++r) {
    if (open[r]) return r;
  }
  return kNoEvent;
}

void Explorer::write(State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  const uint16_t other = conflict(s, cell, event, knows);
  if (other != kNoEvent) fail_race(other, event, cell);
  CellState& c = s.cells[cell];
  c.writer = event;
  c.also.reset();
  c.readers.reset();
}

/// What the sources hold: each contribution as often as it is in them. 0: it is not known.
uint16_t Explorer::load(State& s, const Op& op, const Element& e, uint32_t call, uint16_t event,
                        Knowledge& knows, Packets packets, Stored& stored) {
  std::vector<Contribution> sum;
  std::vector<Form> forms;
  bool known = true;
  for (const Cell& cell : e.srcs) {
    const bool slot = cell.packets != PacketFormat::none;
    if (e.hollow && !slot) continue;
    CellState& c = s.cells[cell.at(call)];
    bool sees_all = true;
    if (slot && packets != Packets::raw) {
      c.readers.set(event);
    } else {
      sees_all = read(s, cell.at(call), event, knows);
    }
    if (slot && packets != Packets::polled) {
      stored.stamp = c.stamp;
      stored.hollow = c.hollow;
    }
    if (c.value == 0 && options_.same_bits) c.value = values_.leftover(cell.at(call), c.writer);
    known &= c.value != 0;
    if (sees_all) stored.from |= c.from;
    const auto held = values_.of(c.value);
    sum.insert(sum.end(), held.begin(), held.end());
    forms.push_back(values_.form(c.value));
  }
  if (e.hollow) {  // no value to depend on: but what its strand, and those that it met, have polled
    knows.hollow |= stored.from;
    stored.from = knows.hollow;
    return number({});
  }
  if (!known) return 0;
  return number(std::move(sum), forms_.sum(forms, op.summation));
}

/// What destination `dst` of an op gets that applies a row function to `arguments`, or to their
/// sum.
uint16_t Explorer::applied_to(const Op& op, size_t dst, uint16_t arguments) {
  const Applied what = applied(program_, op);
  const bool sums = !info(op.kind).has(kApplies);
  for (uint32_t k = 0; k < what.results.size(); ++k) {
    const RowValue to = what.result(k);
    if (!to.external && (sums || to.index == dst))
      return values_.result_of(what.function, k, arguments);
  }
  return 0;
}

void Explorer::move(State& s, const Op& op, const Element& e, uint32_t call, uint16_t event,
                    Knowledge& knows, Packets packets) {
  const bool computes = applies(op);
  if (!computes && e.dsts.size() == 1 && e.srcs.size() == 1 &&
      e.dsts[0].at(call) == e.srcs[0].at(call)) {
    return;
  }
  Stored stored{.stamp = static_cast<uint16_t>(call + 1), .hollow = e.hollow};
  stored.from.set(event);
  const uint16_t loaded = load(s, op, e, call, event, knows, packets, stored);
  for (size_t i = 0; i < e.dsts.size(); ++i) {
    stored.value = computes && !e.hollow ? applied_to(op, i, loaded) : loaded;
    store(s, e.dsts[i], call, event, knows, stored);
  }
  if (packets == Packets::polled) empty(s, e, call, event);
}

void Explorer::store(State& s, const Cell& cell, uint32_t call, uint16_t event,
                     const Knowledge& knows, const Stored& stored) {
  CellState& c = s.cells[cell.at(call)];
  const bool flagged = cell.packets != PacketFormat::none && !is_sentinel(cell.packets);
  const bool plain = cell.packets == PacketFormat::none && options_.same_bits;
  const bool same =
      c.value == stored.value && (flagged ? c.stamp == stored.stamp : plain && stored.value != 0);
  if (!same || (!flagged && c.writer == kNoEvent)) {
    write(s, cell.at(call), event, knows);
    c.value = stored.value;
    c.stamp = stored.stamp;
    c.from = stored.from;
    c.hollow = stored.hollow;
    return;
  }
  const bool ordered =  // changes nothing
      conflict(s, cell.at(call), event, knows) == kNoEvent;
  found_.same_bits |= !ordered;
  if (!plain) return;
  c.also.set(ordered ? std::exchange(c.writer, event) : event);
  c.from |= stored.from;  // for readers that know of all the stores
}

/// Slots of sentinels are emptied after the stores, as GPUs do it (ir/ops/parts.h).
void Explorer::empty(State& s, const Element& e, uint32_t call, uint16_t event) {
  for (const Cell& cell : e.srcs) {
    if (!is_sentinel(cell.packets)) continue;
    CellState& c = s.cells[cell.at(call)];
    c.stamp = 0;
    c.writer = event;
    c.readers.reset();
  }
}

void Explorer::access(State& s, const Step& step, uint32_t call, Knowledge& knows) {
  const uint16_t e = event(step, call);
  for (const Element& element : step.elements) {
    move(s, *step.op, element, call, e, knows, Packets::polled);
  }
  knows.done.set(e);
}

/// What processes learn from packets that they have waited for: what they were made of has been
/// read, and what their rank knew when it began the call. Of a strand's own packets, also if a port
/// moves them.
void Explorer::hear(State& s, const Step& step, uint32_t call, Knowledge& knows) const {
  for (const Element& e : step.elements) {
    for (const Cell& cell : e.srcs) {
      if (cell.packets == PacketFormat::none) continue;
      const CellState& c = s.cells[cell.at(call)];
      (c.hollow ? knows.hollow : knows.read) |= c.from;
      if (c.writer != kNoEvent) knows.done |= entry_of_writer(s, c.writer);
    }
  }
}

bool Explorer::polled(const State& s, const Step& step, uint32_t call) const {
  for (const Element& e : step.elements) {
    for (const Cell& cell : e.srcs) {
      const uint16_t stamp = s.cells[cell.at(call)].stamp;
      if (cell.packets == PacketFormat::none) continue;
      if (is_sentinel(cell.packets) ? stamp == 0 : stamp != call + 1) return false;
    }
  }
  return true;
}

// ---- ports

void Explorer::signal(Counter& c, const Knowledge* published, const Events& entry) {
  if (published != nullptr) c.all.strong.join(*published);
  c.all.weak |= entry;
  c.arrived.push_back(c.all);
}

/// Of several that share a semaphore it is not known whose release was taken: what all have
/// published so far is learned. Else the k-th acquire is sure of so many releases only as it needs.
void Explorer::acquire(Counter& c, uint32_t semaphore, Knowledge& knows) {
  const size_t initial = model_.initial[semaphore];
  const size_t taken = c.arrived.size() + initial - c.value--;
  if (users_.several_share(semaphore)) return knows.join(c.all.strong);
  if (taken >= initial) knows.join(c.arrived[taken - initial].strong);
}

// What a put has written is known where a later signal of the same channel is known. Its source
// has been read: that a proxy comes late is a schedule of its own.
void Explorer::serve(State& s, size_t p) {
  ++s.processes[p].call;  // counts what it has done
  std::vector<Posted>& queue = s.ports[model_.processes[p].port];
  const auto next = queue.begin() + (model_.processes[p].overtakes ? 1 : 0);
  const Posted posted = *next;
  queue.erase(next);
  const bool overtakes = model_.processes[p].overtakes;
  Knowledge& knows = s.processes[p].knows;
  knows.join(posted.knows);
  if (overtakes) knows.join(s.processes[p - 1].knows);
  const Step& step = model_.processes[posted.process].steps[posted.step];
  if (step.elements.empty()) {
    if (model_.partner[step.index] == kNone) return;
    const uint32_t rank = model_.processes[posted.process].rank;
    return signal(s.channels[model_.partner[step.index]], step.relaxed ? nullptr : &knows,
                  entry(s, rank, posted.call));
  }
  const uint16_t e = event(step, posted.call);
  const Packets packets = info(step.op->kind).has(kPolls) ? Packets::raw_seen : Packets::raw;
  for (const Element& element : step.elements) {
    move(s, *step.op, element, posted.call, e, knows, packets);
  }
  knows.done.set(e);
  s.served.set(e);
  // What comes now was posted after all that has overtaken this.
  if (!overtakes) knows.join(s.processes[p + 1].knows);
}

// ---- the other side of flags

const ProcessState& Explorer::caller_of(const State& s, uint32_t rank) const {
  size_t q = 0;
  while (model_.processes[q].kind != Process::Kind::caller || model_.processes[q].rank != rank) ++q;
  return s.processes[q];
}

/// In the call of its rank, when what it waits for has been raised.
bool Explorer::may_go(const State& s, const Process& p, const Step& step, uint32_t call) const {
  const ProcessState& caller = caller_of(s, p.rank);
  if (caller.call != call || caller.step != 1) return false;
  if (step.kind == Kind::take) return is_raised(s, step.index, call);
  return std::ranges::all_of(model_.flags[step.index].waits_for,
                             [&](uint32_t flag) { return is_raised(s, flag, call); });
}

/// Is the cell, of the input, of a region that the other side writes?
bool Explorer::has_flag(uint32_t rank, const CallerCell& cell) const {
  return std::ranges::any_of(model_.processes, [&](const Process& p) {
    if (p.kind != Process::Kind::other || p.rank != rank) return false;
    const Step& step = p.steps[0];
    return step.kind == Kind::raise && std::ranges::any_of(step.region, [&](const CallerCell& c) {
             return c.chunk == cell.chunk && c.offset == cell.offset;
           });
  });
}

void Explorer::raise(State& s, const Process& p, const Step& step, ProcessState& state) {
  const uint16_t e = event(step, state.call);
  state.knows.join(caller_of(s, p.rank).knows);
  for (const uint32_t flag : model_.flags[step.index].waits_for) {
    state.knows.join(s.flags[flag].knows);
  }
  for (const CallerCell& own : step.region) {
    const uint32_t at = own.cell.at(state.call);
    write(s, at, e, state.knows);
    s.cells[at].from.reset();
    s.cells[at].hollow = false;
    const Contribution input{p.rank, own.chunk, state.call, own.offset};
    s.cells[at].value = number({input}, forms_.given(input));
  }
  state.knows.done.set(e);
  FlagState& flag = s.flags[step.index];
  flag.raised = static_cast<uint16_t>(flag.raised + model_.flags[step.index].raises);
  flag.knows.join(state.knows);
}

/// What is there now is what was promised.
void Explorer::take_region(State& s, const Process& p, const Step& step, ProcessState& state) {
  const uint16_t e = event(step, state.call);
  state.knows.join(s.flags[step.index].knows);
  for (const CallerCell& own : step.region) {
    read(s, own.cell.at(state.call), e, state.knows);
    if (holds_promise(s, p.rank, state.call, own)) continue;
    fail(Verdict::wrong_data, fmt::format("output[{}] of rank {} in call {} when it is notified",
                                          own.chunk, p.rank, state.call));
  }
  state.knows.done.set(e);
}

// ---- callers

void Explorer::begin(State& s, const Process& p, const Step& step, ProcessState& state) {
  const uint16_t e = event(step, state.call);
  // What the rank's blocks knew of ports is so for all that hear that it is in this call, be it by
  // a relaxed signal.
  s.ended |= state.knows.done & s.served;
  for (const uint32_t side : {kOutput, kInput}) {  // in place the input is filled last
    for (const CallerCell& own : model_.buffers[side][p.rank]) {
      if (side == kInput && has_flag(p.rank, own)) continue;
      const uint32_t at = own.cell.at(state.call);
      write(s, at, e, state.knows);
      s.cells[at].from.reset();
      s.cells[at].hollow = false;
      const Contribution input{p.rank, own.chunk, state.call, own.offset};
      s.cells[at].value = side == kOutput ? 0 : number({input}, forms_.given(input));
    }
  }
  state.knows.done.set(e);
  s.ended.set(e);
  entry(s, p.rank, state.call) = state.knows.done;
}

void Explorer::end(State& s, const Process& p, const Step& step, ProcessState& state) {
  for (size_t q = 0; q < model_.processes.size(); ++q) {
    const Process& strand = model_.processes[q];
    const bool works = strand.kind == Process::Kind::strand || strand.kind == Process::Kind::other;
    if (!works || strand.rank != p.rank) continue;
    state.knows.join(s.processes[q].knows);
    for (const Step& own : strand.steps) {
      const bool of_flag = own.kind == Kind::raise || own.kind == Kind::take;
      if (own.kind == Kind::access || of_flag) s.ended.set(event(own, state.call));
    }
  }
  const uint16_t e = event(step, state.call);
  for (const CallerCell& own : model_.buffers[kOutput][p.rank]) {
    read(s, own.cell.at(state.call), e, state.knows);
  }
  state.knows.done.set(e);
  s.ended.set(e);
  check_output(s, p.rank, state.call);
}

/// Is there what is promised, or is nothing?
bool Explorer::holds_promise(const State& s, uint32_t rank, uint32_t call, const CallerCell& own) {
  Promise promise;
  if (!program_.contract.promise(rank, own.chunk, promise)) return true;
  std::vector<Contribution> expected;
  for (const CallerChunk& input : promise.inputs) {
    expected.push_back({input.rank, input.chunk, call, own.offset});
  }
  const uint16_t found = s.cells[own.cell.at(call)].value;
  if (forms_.followed()) {
    std::ranges::sort(expected);
    return std::ranges::equal(values_.of(found), expected) &&
           forms_.keeps(values_.form(found), expected);
  }
  uint16_t value = number(std::move(expected));
  if (const auto then = bind_then(program_))
    value = values_.result_of(then->function, then->output, value);
  return found == value;
}

void Explorer::check_output(const State& s, uint32_t rank, uint32_t call) {
  for (const CallerCell& own : model_.buffers[kOutput][rank]) {
    if (holds_promise(s, rank, call, own)) continue;
    return fail(Verdict::wrong_data, fmt::format("output[{}] of rank {} in call {}, byte {}",
                                                 own.chunk, rank, call, own.offset));
  }
  for (size_t q = 0; program_.contract.kind == CollectiveKind::barrier && q < s.processes.size();
       ++q) {
    const ProcessState& other = s.processes[q];
    const bool in = other.call > call || (other.call == call && other.step > 0);
    if (model_.processes[q].kind == Process::Kind::caller && !in) {
      fail(Verdict::wrong_data,
           fmt::format("rank {} leaves the barrier of call {} early", rank, call));
    }
  }
}

}  // namespace mscclc::explorer
