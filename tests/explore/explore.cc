#include "tests/explore/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "ir/op_error.h"
#include "ir/print.h"
#include "tests/explore/state.h"
#include "tests/explore/steps.h"

namespace mscclc {
namespace {

using namespace explorer;
using Kind = Step::Kind;

/// A contribution: an input chunk of a rank in a call.
using Contribution = std::array<uint32_t, 3>;

class Explorer {
 public:
  Explorer(const Program& program, const ExploreOptions& options, uint32_t teller)
      : program_(program),
        options_(options),
        model_(make_model(program, options.in_place, teller)) {}

  Exploration run();

 private:
  State start() const;
  bool enabled(const State& s, size_t p) const;
  void take(State& s, size_t p);
  void perform(State& s, size_t p);
  void run_on(State& s, size_t p);
  void advance(State& s, size_t p) const;
  bool finished(const State& s) const;

  bool polled(const State& s, const Step& step, uint32_t call) const;
  std::vector<size_t> meeting(const State& s, size_t p) const;
  bool lanes_gone(const State& s, uint32_t rank, uint32_t call) const;
  void access(State& s, const Step& step, uint32_t call, Knowledge& knows);
  void move(State& s, const Element& e, uint32_t call, uint16_t event, Knowledge& knows, bool raw);
  void read(State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  void write(State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  void serve(State& s, size_t p);
  void signal(State& s, uint32_t channel, const Knowledge* told);
  void begin(State& s, const Process& p, const Step& step, ProcessState& state);
  void end(State& s, const Process& p, const Step& step, ProcessState& state);
  void check_output(const State& s, uint32_t rank, uint32_t call);

  const Step& step_of(const State& s, size_t p) const {
    return model_.processes[p].steps[s.processes[p].step];
  }
  uint16_t event(const Step& step, uint32_t call) const {
    return static_cast<uint16_t>(call * model_.events + step.event);
  }
  uint16_t number(std::vector<Contribution> multiset) {
    std::sort(multiset.begin(), multiset.end());
    const auto [at, added] = numbers_.try_emplace(multiset, values_.size());
    if (added) values_.push_back(std::move(multiset));
    return static_cast<uint16_t>(at->second);
  }
  void fail(Verdict verdict, std::string reason) {
    if (found_.verdict != Verdict::right) return;
    found_.verdict = verdict;
    found_.reason = std::move(reason);
  }
  void fail_race(uint16_t earlier, uint16_t later, uint32_t cell);
  std::string describe(uint16_t event) const;

  const Program& program_;
  const ExploreOptions& options_;
  const Model model_;
  std::vector<std::vector<Contribution>> values_ = {{}};
  std::map<std::vector<Contribution>, size_t> numbers_;
  Exploration found_;
};

State Explorer::start() const {
  State s;
  s.processes.resize(model_.processes.size());
  s.cells.resize(model_.cells);
  s.channels.resize(model_.channels);
  s.ports.resize(model_.channels);
  for (const uint32_t value : model_.initial) {
    s.semaphores.emplace_back().value = static_cast<uint16_t>(value);
  }
  return s;
}

std::string Explorer::describe(uint16_t event) const {
  for (const Process& p : model_.processes) {
    for (const Step& step : p.steps) {
      if (step.event != event % model_.events || step.kind == Kind::enter) continue;
      const std::string call = fmt::format("call {}", event / model_.events);
      if (step.kind == Kind::begin || step.kind == Kind::end) {
        return fmt::format("{} of rank {}'s caller", call, p.rank);
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

// ---- accesses

void Explorer::read(State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  CellState& c = s.cells[cell];
  if (c.writer != kNobody && c.writer != event && !s.ended[c.writer] && !knows.done[c.writer]) {
    fail_race(c.writer, event, cell);
  }
  c.readers.set(event);
}

void Explorer::write(State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  CellState& c = s.cells[cell];
  if (c.writer != kNobody && c.writer != event && !s.ended[c.writer] && !knows.done[c.writer]) {
    fail_race(c.writer, event, cell);
  }
  Events open = c.readers & ~(s.ended | s.served | knows.done | knows.read);
  open.reset(event);
  for (uint16_t r = 0; open.any() && r < kMostEvents; ++r) {
    if (open[r]) return fail_race(r, event, cell);
  }
  c.writer = event;
  c.readers.reset();
}

/// `raw`: packets are moved as they lie, by a proxy; else they are read as such, which needs no
/// order behind their writer.
void Explorer::move(State& s, const Element& e, uint32_t call, uint16_t event, Knowledge& knows,
                    bool raw) {
  if (!e.dsts.empty() && e.srcs.size() == 1 && e.dsts[0].at(call) == e.srcs[0].at(call)) return;
  std::vector<Contribution> sum;
  Events from;
  from.set(event);
  uint16_t stamp = static_cast<uint16_t>(call + 1);
  bool known = true;
  for (const Cell& cell : e.srcs) {
    CellState& c = s.cells[cell.at(call)];
    const bool polled = cell.packets != PacketFormat::none && !raw;
    if (polled) {
      c.readers.set(event);
      knows.read |= c.from;
    } else {
      read(s, cell.at(call), event, knows);
      if (cell.packets != PacketFormat::none) stamp = c.stamp;
    }
    known &= c.value != 0;
    from |= c.from;
    sum.insert(sum.end(), values_[c.value].begin(), values_[c.value].end());
    if (polled && cell.packets == PacketFormat::sentinel) {  // it is emptied
      c.stamp = 0;
      c.writer = event;
      c.readers.reset();
    }
  }
  const uint16_t value = known ? number(std::move(sum)) : 0;
  for (const Cell& cell : e.dsts) {
    CellState& c = s.cells[cell.at(call)];
    const bool flagged =
        cell.packets != PacketFormat::none && cell.packets != PacketFormat::sentinel;
    if (flagged && c.value == value && c.stamp == stamp) continue;  // changes nothing
    write(s, cell.at(call), event, knows);
    c.value = value;
    c.stamp = stamp;
    c.from = from;
  }
}

void Explorer::access(State& s, const Step& step, uint32_t call, Knowledge& knows) {
  const uint16_t e = event(step, call);
  for (const Element& element : step.elements) move(s, element, call, e, knows, false);
  knows.done.set(e);
}

bool Explorer::polled(const State& s, const Step& step, uint32_t call) const {
  for (const Element& e : step.elements) {
    for (const Cell& cell : e.srcs) {
      const uint16_t stamp = s.cells[cell.at(call)].stamp;
      if (cell.packets == PacketFormat::none) continue;
      if (cell.packets == PacketFormat::sentinel ? stamp == 0 : stamp != call + 1) return false;
    }
  }
  return true;
}

// ---- ports

void Explorer::signal(State& s, uint32_t channel, const Knowledge* told) {
  if (channel == kNone) return;
  Counter& c = s.channels[channel];
  if (told != nullptr) c.told.join(*told);
  c.arrived.push_back(c.told);
}

// What a put has written is known to whom a later signal of the same channel is known. Its source
// has been read: that a proxy comes late is a schedule of its own.
void Explorer::serve(State& s, size_t p) {
  std::vector<Posted>& queue = s.ports[model_.processes[p].port];
  const Posted posted = queue.front();
  queue.erase(queue.begin());
  Knowledge& knows = s.processes[p].knows;
  knows.join(posted.knows);
  const Step& step = model_.processes[posted.process].steps[posted.step];
  if (step.elements.empty()) {
    return signal(s, model_.partner[step.index], step.relaxed ? nullptr : &knows);
  }
  const uint16_t e = event(step, posted.call);
  for (const Element& element : step.elements) move(s, element, posted.call, e, knows, true);
  knows.done.set(e);
  s.served.set(e);
}

// ---- callers

void Explorer::begin(State& s, const Process& p, const Step& step, ProcessState& state) {
  const uint16_t e = event(step, state.call);
  for (const uint32_t side : {kOutput, kInput}) {  // in place the input is filled last
    const std::vector<Cell>& cells = model_.buffers[side][p.rank];
    for (uint32_t i = 0; i < cells.size(); ++i) {
      const uint32_t at = cells[i].at(state.call);
      write(s, at, e, state.knows);
      s.cells[at].from.reset();
      s.cells[at].value = side == kOutput ? 0 : number({{p.rank, i / model_.slices, state.call}});
    }
  }
  state.knows.done.set(e);
  s.ended.set(e);
}

void Explorer::end(State& s, const Process& p, const Step& step, ProcessState& state) {
  for (size_t q = 0; q < model_.processes.size(); ++q) {
    const Process& lane = model_.processes[q];
    if (lane.kind != Process::Kind::lane || lane.rank != p.rank) continue;
    state.knows.join(s.processes[q].knows);
    for (const Step& own : lane.steps) {
      if (own.kind == Kind::access) s.ended.set(event(own, state.call));
    }
  }
  const uint16_t e = event(step, state.call);
  for (const Cell& cell : model_.buffers[kOutput][p.rank]) {
    read(s, cell.at(state.call), e, state.knows);
  }
  state.knows.done.set(e);
  s.ended.set(e);
  check_output(s, p.rank, state.call);
}

void Explorer::check_output(const State& s, uint32_t rank, uint32_t call) {
  const std::vector<Cell>& cells = model_.buffers[kOutput][rank];
  Promise promise;
  for (uint32_t i = 0; i < cells.size(); ++i) {
    const uint32_t chunk = i / model_.slices;
    if (!program_.contract.promise(rank, chunk, promise)) continue;
    std::vector<Contribution> expected;
    for (const Place& input : promise.inputs) expected.push_back({input.rank, input.chunk, call});
    if (s.cells[cells[i].at(call)].value == number(std::move(expected))) continue;
    return fail(Verdict::wrong_data,
                fmt::format("output[{}] of rank {} in call {}", chunk, rank, call));
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

// ---- steps

/// The processes that take a step together, if all of them are there.
std::vector<size_t> Explorer::meeting(const State& s, size_t p) const {
  const Process& own = model_.processes[p];
  const Step& step = step_of(s, p);
  std::vector<size_t> all;
  size_t members = kLanes;
  if (step.kind == Kind::meet) members = model_.barriers[step.index].blocks.size();
  for (size_t q = 0; q < model_.processes.size(); ++q) {
    const Process& other = model_.processes[q];
    if (other.kind != Process::Kind::lane || other.rank != own.rank) continue;
    if (step.kind == Kind::sync && other.block != own.block) continue;
    if (s.processes[q].call == options_.calls) continue;
    const Step& theirs = step_of(s, q);
    if (theirs.kind == step.kind && theirs.index == step.index) all.push_back(q);
  }
  if (all.size() != members) all.clear();
  return all;
}

bool Explorer::lanes_gone(const State& s, uint32_t rank, uint32_t call) const {
  for (size_t q = 0; q < model_.processes.size(); ++q) {
    const Process& p = model_.processes[q];
    if (p.kind == Process::Kind::lane && p.rank == rank && s.processes[q].call <= call) {
      return false;
    }
  }
  return true;
}

bool Explorer::enabled(const State& s, size_t p) const {
  const ProcessState& state = s.processes[p];
  const Process& process = model_.processes[p];
  if (process.kind == Process::Kind::proxy) return !s.ports[process.port].empty();
  if (state.call == options_.calls) return false;
  const Step& step = step_of(s, p);
  switch (step.kind) {
    case Kind::enter: {
      size_t caller = p;
      while (model_.processes[caller].kind != Process::Kind::caller) --caller;
      return s.processes[caller].call == state.call && s.processes[caller].step == 1;
    }
    case Kind::poll:
      return polled(s, step, state.call);
    case Kind::wait:
      return s.channels[step.index].arrived.size() > s.channels[step.index].value;
    case Kind::acquire:
      return s.semaphores[step.index].value > 0;
    case Kind::sync:
    case Kind::meet: {
      const std::vector<size_t> all = meeting(s, p);
      return !all.empty() && all[0] == p;
    }
    case Kind::post:
      return s.ports[step.index].size() < kQueue;
    case Kind::flush:
      return s.ports[step.index].empty();
    case Kind::end:
      return lanes_gone(s, process.rank, state.call);
    default:
      return true;
  }
}

void Explorer::advance(State& s, size_t p) const {
  ProcessState& state = s.processes[p];
  if (++state.step < model_.processes[p].steps.size()) return;
  state.step = 0;
  ++state.call;
}

/// Does what the process's step is, but for going past it.
void Explorer::perform(State& s, size_t p) {
  const Step& step = step_of(s, p);
  ProcessState& state = s.processes[p];
  switch (step.kind) {
    case Kind::enter:
      for (size_t q = p;; --q) {
        if (model_.processes[q].kind != Process::Kind::caller) continue;
        return state.knows.join(s.processes[q].knows);
      }
    case Kind::access:
      return access(s, step, state.call, state.knows);
    case Kind::signal:
      return signal(s, step.index, step.relaxed ? nullptr : &state.knows);
    case Kind::wait: {
      Counter& c = s.channels[step.index];
      if (!step.relaxed) state.knows.join(c.arrived[c.value]);
      ++c.value;
      return;
    }
    case Kind::release:
      s.semaphores[step.index].told.join(state.knows);
      ++s.semaphores[step.index].value;
      return;
    case Kind::acquire:
      state.knows.join(s.semaphores[step.index].told);
      --s.semaphores[step.index].value;
      return;
    case Kind::post: {
      const Posted posted{static_cast<uint16_t>(p), state.step, state.call, state.knows};
      return s.ports[step.index].push_back(posted);
    }
    case Kind::begin:
      return begin(s, model_.processes[p], step, state);
    case Kind::end:
      return end(s, model_.processes[p], step, state);
    case Kind::serve:
      return serve(s, p);
    case Kind::poll:
    case Kind::flush:
    case Kind::sync:
    case Kind::meet:
      return;
  }
}

/// Steps up to the next one that stands alone.
void Explorer::run_on(State& s, size_t p) {
  advance(s, p);
  while (s.processes[p].call < options_.calls && !step_of(s, p).stands_alone()) {
    perform(s, p);
    advance(s, p);
  }
}

/// One transition. REQUIRES: enabled(s, p).
void Explorer::take(State& s, size_t p) {
  const Process& process = model_.processes[p];
  if (process.kind == Process::Kind::proxy) return serve(s, p);
  const Kind kind = step_of(s, p).kind;
  if (kind != Kind::sync && kind != Kind::meet) {
    perform(s, p);
    return run_on(s, p);
  }
  const std::vector<size_t> all = meeting(s, p);
  Knowledge together;
  for (const size_t q : all) together.join(s.processes[q].knows);
  for (const size_t q : all) s.processes[q].knows = together;
  for (const size_t q : all) run_on(s, q);
}

bool Explorer::finished(const State& s) const {
  for (size_t p = 0; p < model_.processes.size(); ++p) {
    const bool proxy = model_.processes[p].kind == Process::Kind::proxy;
    if (!proxy && s.processes[p].call < options_.calls) return false;
  }
  return true;
}

Exploration Explorer::run() {
  if (model_.events * options_.calls > kMostEvents) {
    return {Verdict::too_large, "too many accesses", 0};
  }
  std::vector<State> open = {start()};
  std::unordered_set<std::string> seen = {open.back().key()};
  while (!open.empty() && found_.verdict == Verdict::right) {
    const State s = std::move(open.back());
    open.pop_back();
    bool any = false;
    for (size_t p = 0; p < model_.processes.size(); ++p) {
      if (!enabled(s, p)) continue;
      any = true;
      State next = s;
      take(next, p);
      if (seen.insert(next.key()).second) open.push_back(std::move(next));
    }
    if (!any && !finished(s)) fail(Verdict::deadlock, "nothing can move");
    if (seen.size() > options_.most_states) fail(Verdict::too_large, "too many states");
  }
  found_.states = seen.size();
  return found_;
}

}  // namespace

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"right", "wrong data",  "deadlock",
                                         "race",  "unsupported", "too large"};
  return kNames[static_cast<size_t>(verdict)];
}

Exploration explore(const Program& program, const ExploreOptions& options) {
  for (const Rank& rank : program.ranks) {
    for (const Op& op : rank.ops) {
      if (op.loop != kNone) return {Verdict::unsupported, "a pipeline", 0};
    }
  }
  Exploration all;
  for (uint32_t teller = 0; teller < kLanes && all.verdict == Verdict::right; ++teller) {
    const Exploration one = Explorer(program, options, teller).run();
    all = {one.verdict, one.reason, all.states + one.states};
  }
  return all;
}

}  // namespace mscclc
