#include "tests/explore/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

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

/// Which counters, queues and slots have several givers, or takers. A packet slot that is put into
/// more than once in a call, be it by one process, has its readers as takers, too: what they see,
/// and whether a put comes after they have emptied the slot, depends on when they come.
class Users {
 public:
  /// `plain`: also places of plain data.
  Users(const Model& model, bool plain)
      : plain_(plain),
        givers_(model.channels),
        takers_(model.channels),
        posters_(model.channels),
        acquirers_(model.semaphores),
        releasers_(model.semaphores),
        sharers_(model.semaphores),
        writers_(model.cells),
        root_(model.processes.size()) {
    std::iota(root_.begin(), root_.end(), 0u);
    for (uint32_t p = 0; p < model.processes.size(); ++p) {
      for (const Step& step : model.processes[p].steps) add(model, p, step);
    }
    add_readers(model);
    find_circles(model);
  }

  /// Processes that contend with each other, directly or by way of others.
  const std::vector<std::vector<size_t>>& circles() const { return circles_; }

  /// Has a semaphore several releasers or acquirers?
  bool several_share(uint32_t semaphore) const {
    return releasers_[semaphore].several || acquirers_[semaphore].several;
  }

  /// May it matter what other givers or takers do before the step?
  bool contended(const Step& step) const {
    switch (step.kind) {
      case Kind::signal:
        return step.index != kNone && givers_[step.index].several;
      case Kind::wait:
        return takers_[step.index].several;
      case Kind::post:
      case Kind::flush:
        return posters_[step.index].several;
      case Kind::release:
      case Kind::acquire:
        return several_share(step.index);
      case Kind::poll:
      case Kind::access:
        return moves_contended(step);
      default:
        return false;
    }
  }

  /// Do others write there, too, or is a packet read from where several are put? For a post: other
  /// ports or lanes.
  bool moves_contended(const Step& step) const {
    return std::ranges::any_of(step.elements, [&](const Element& e) {
      return std::ranges::any_of(
                 e.dsts, [&](const Cell& c) { return counts(c) && writers_[c.first].several; }) ||
             std::ranges::any_of(e.srcs, [&](const Cell& c) { return put_again(c); });
    });
  }

 private:
  struct User {
    uint32_t process = kNone;
    bool several = false;
    void add(uint32_t p, std::vector<uint32_t>& root) {
      several |= process != kNone && process != p;
      if (process != kNone) root[find(root, p)] = find(root, process);
      process = p;
    }
  };
  static uint32_t find(const std::vector<uint32_t>& root, uint32_t p) {
    while (root[p] != p) p = root[p];
    return p;
  }

  void find_circles(const Model& model) {
    std::set<uint32_t> contending;
    for (uint32_t p = 0; p < model.processes.size(); ++p) {
      for (const Step& step : model.processes[p].steps) {
        if (contended(step)) contending.insert(p);
        if (moves_contended(step)) contending.insert(mover(model, p, step));
      }
    }
    std::map<uint32_t, std::vector<size_t>> members;
    for (const uint32_t p : contending) members[find(root_, p)].push_back(p);
    for (auto& [root, circle] : members) circles_.push_back(std::move(circle));
  }

  bool counts(const Cell& cell) const { return plain_ || cell.packets != PacketFormat::none; }

  /// Is more than one packet put there in a call?
  bool put_again(const Cell& cell) const {
    return cell.packets != PacketFormat::none && writers_[cell.first].several;
  }

  /// Who reads and writes: what is posted, the port's proxy.
  static uint32_t mover(const Model& model, uint32_t p, const Step& step) {
    if (step.kind != Kind::post) return p;
    const auto proxy = std::ranges::find_if(model.processes, [&](const Process& q) {
      return q.kind == Process::Kind::proxy && q.port == step.index;
    });
    return static_cast<uint32_t>(proxy - model.processes.begin());
  }

  void add(const Model& model, uint32_t p, const Step& step) {
    if (step.kind == Kind::signal && step.index != kNone) givers_[step.index].add(p, root_);
    if (step.kind == Kind::wait) takers_[step.index].add(p, root_);
    if (step.kind == Kind::post || step.kind == Kind::flush) posters_[step.index].add(p, root_);
    if (step.kind == Kind::release) releasers_[step.index].add(p, root_);
    if (step.kind == Kind::acquire) acquirers_[step.index].add(p, root_);
    const bool shared = step.kind == Kind::release || step.kind == Kind::acquire;
    if (shared) sharers_[step.index].add(p, root_);
    if (step.kind == Kind::poll) return;  // a later step of the op moves
    for (const Element& e : step.elements) {
      for (const Cell& c : e.dsts) {
        if (!counts(c)) continue;
        User& own = writers_[c.first];
        own.several |= c.packets != PacketFormat::none && own.process != kNone;
        own.add(mover(model, p, step), root_);
      }
    }
  }

  /// REQUIRES: all writers are known.
  void add_readers(const Model& model) {
    for (uint32_t p = 0; p < model.processes.size(); ++p) {
      for (const Step& step : model.processes[p].steps) {
        for (const Element& e : step.elements) {
          for (const Cell& c : e.srcs) {
            if (!put_again(c)) continue;
            writers_[c.first].add(step.kind == Kind::poll ? p : mover(model, p, step), root_);
          }
        }
      }
    }
  }

  const bool plain_;
  std::vector<User> givers_, takers_, posters_, acquirers_, releasers_, sharers_, writers_;
  std::vector<uint32_t> root_;  ///< by process: another one that contends with it, or itself
  std::vector<std::vector<size_t>> circles_;
};

class Explorer {
 public:
  Explorer(const Program& program, const ExploreOptions& options, uint32_t teller)
      : program_(program),
        options_(options),
        model_(make_model(program, options.in_place, teller)),
        users_(model_, options.same_bits) {}

  Exploration run();

 private:
  State start() const;
  bool enabled(const State& s, size_t p) const;
  void take(State& s, size_t p);
  void perform(State& s, size_t p);
  void run_on(State& s, size_t p);
  void advance(State& s, size_t p) const;
  bool finished(const State& s) const;
  /// A step that hides accesses from races: of a caller, or the call-th that a proxy does.
  struct Hiding {
    size_t process;
    uint32_t call, step;
  };
  std::vector<Hiding> hiding_steps() const;
  uint32_t posts_to(uint32_t port) const;
  static bool is(const Hiding* held, const State& s, size_t p) {
    return held != nullptr && held->process == p && held->call == s.processes[p].call &&
           held->step == s.processes[p].step;
  }
  bool contended(const State& s, size_t p) const;
  bool leads_to_contended(const State& s, size_t p) const;
  void go_on_alone(State& s, const Hiding* held);
  std::vector<size_t> choices(const State& s, const Hiding* held) const;
  void search(const Hiding* held);

  bool polled(const State& s, const Step& step, uint32_t call) const;
  std::vector<size_t> meeting(const State& s, size_t p) const;
  bool lanes_gone(const State& s, uint32_t rank, uint32_t call) const;
  void access(State& s, const Step& step, uint32_t call, Knowledge& knows);
  /// Packets are read as such, which needs no order behind their writer, or moved as they lie, by a
  /// proxy, perhaps for a block that has seen all of them.
  enum class Packets : uint8_t { polled, raw, raw_seen };
  void move(State& s, const Element& e, uint32_t call, uint16_t event, Knowledge& knows,
            Packets packets);
  static bool over(const State& s, uint16_t writer, uint16_t event, const Knowledge& knows);
  void read(State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  static uint16_t conflict(const State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  void write(State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  void serve(State& s, size_t p);
  static void signal(Counter& c, const Knowledge* told);
  void acquire(Counter& c, uint32_t semaphore, Knowledge& knows);
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
  const Users users_;
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

bool Explorer::over(const State& s, uint16_t writer, uint16_t event, const Knowledge& knows) {
  return writer == kNobody || writer == event || s.ended[writer] || knows.done[writer];
}

void Explorer::read(State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  CellState& c = s.cells[cell];
  Events also = c.also;
  also.reset(event);
  const Events known = also & (s.ended | knows.done);
  const bool sure = over(s, c.writer, event, knows);
  if (!sure && known.none()) {
    fail_race(c.writer, event, cell);
  } else {
    found_.same_bits |= !sure || also != known;
  }
  c.readers.set(event);
}

/// An access of the cell that a store would be in no order with; kNobody if there is none.
uint16_t Explorer::conflict(const State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  const CellState& c = s.cells[cell];
  if (!over(s, c.writer, event, knows)) return c.writer;
  Events open = c.readers & ~(s.ended | s.served | knows.done | knows.read);
  open |= c.also & ~(s.ended | knows.done);
  open.reset(event);
  for (uint16_t r = 0; open.any() && r < kMostEvents; ++r) {
    if (open[r]) return r;
  }
  return kNobody;
}

void Explorer::write(State& s, uint32_t cell, uint16_t event, const Knowledge& knows) {
  const uint16_t other = conflict(s, cell, event, knows);
  if (other != kNobody) fail_race(other, event, cell);
  CellState& c = s.cells[cell];
  c.writer = event;
  c.also.reset();
  c.readers.reset();
}

void Explorer::move(State& s, const Element& e, uint32_t call, uint16_t event, Knowledge& knows,
                    Packets packets) {
  if (e.dsts.size() == 1 && e.srcs.size() == 1 && e.dsts[0].at(call) == e.srcs[0].at(call)) return;
  const bool raw = packets != Packets::polled;
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
      if (cell.packets != PacketFormat::none && packets == Packets::raw_seen) {
        c.readers.set(event);
      } else {
        read(s, cell.at(call), event, knows);
      }
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
    const bool plain = cell.packets == PacketFormat::none && options_.same_bits;
    const bool same = c.value == value && (flagged ? c.stamp == stamp : plain && known);
    if (same && (flagged || c.writer != kNobody)) {  // changes nothing
      found_.same_bits |= conflict(s, cell.at(call), event, knows) != kNobody;
      if (plain) c.also.set(event);
      continue;
    }
    write(s, cell.at(call), event, knows);
    c.value = value;
    c.stamp = stamp;
    c.from = from;
  }
}

void Explorer::access(State& s, const Step& step, uint32_t call, Knowledge& knows) {
  const uint16_t e = event(step, call);
  for (const Element& element : step.elements) move(s, element, call, e, knows, Packets::polled);
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

void Explorer::signal(Counter& c, const Knowledge* told) {
  if (told != nullptr) c.told.join(*told);
  c.arrived.push_back(c.told);
}

/// Of several who share a semaphore nobody knows whose release was taken: what all have told so far
/// is learnt. Else the k-th acquire is sure of so many releases only as it needs.
void Explorer::acquire(Counter& c, uint32_t semaphore, Knowledge& knows) {
  const size_t initial = model_.initial[semaphore];
  const size_t taken = c.arrived.size() + initial - c.value--;
  if (users_.several_share(semaphore)) return knows.join(c.told);
  if (taken >= initial) knows.join(c.arrived[taken - initial]);
}

// What a put has written is known to whom a later signal of the same channel is known. Its source
// has been read: that a proxy comes late is a schedule of its own.
void Explorer::serve(State& s, size_t p) {
  ++s.processes[p].call;  // counts what it has done
  std::vector<Posted>& queue = s.ports[model_.processes[p].port];
  const Posted posted = queue.front();
  queue.erase(queue.begin());
  Knowledge& knows = s.processes[p].knows;
  knows.join(posted.knows);
  const Step& step = model_.processes[posted.process].steps[posted.step];
  if (step.elements.empty()) {
    if (model_.partner[step.index] == kNone) return;
    return signal(s.channels[model_.partner[step.index]], step.relaxed ? nullptr : &knows);
  }
  const uint16_t e = event(step, posted.call);
  const Packets packets = info(step.op->kind).has(kPolls) ? Packets::raw_seen : Packets::raw;
  for (const Element& element : step.elements) move(s, element, posted.call, e, knows, packets);
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
      if (step.index == kNone) return;
      return signal(s.channels[step.index], step.relaxed ? nullptr : &state.knows);
    case Kind::wait: {
      Counter& c = s.channels[step.index];
      if (!step.relaxed) state.knows.join(c.arrived[c.value]);
      ++c.value;
      return;
    }
    case Kind::release:
      signal(s.semaphores[step.index], &state.knows);
      ++s.semaphores[step.index].value;
      return;
    case Kind::acquire:
      return acquire(s.semaphores[step.index], step.index, state.knows);
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

// ---- fewer schedules

/// What hides accesses from races: steps of callers, and what proxies do.
std::vector<Explorer::Hiding> Explorer::hiding_steps() const {
  std::vector<Hiding> all;
  for (size_t p = 0; p < model_.processes.size(); ++p) {
    const Process& process = model_.processes[p];
    uint32_t times = process.kind == Process::Kind::caller ? 1 : 0;
    if (process.kind == Process::Kind::proxy) times = posts_to(process.port);
    for (uint32_t i = 0; i < times * options_.calls; ++i) {
      for (uint32_t step = 0; step < process.steps.size(); ++step) all.push_back({p, i, step});
    }
  }
  return all;
}

uint32_t Explorer::posts_to(uint32_t port) const {
  uint32_t posts = 0;
  for (const Process& process : model_.processes) {
    posts += static_cast<uint32_t>(std::ranges::count_if(process.steps, [&](const Step& step) {
      return step.kind == Kind::post && step.index == port;
    }));
  }
  return posts;
}

/// Must the process's next transition be tried before and after what others do?
bool Explorer::contended(const State& s, size_t p) const {
  if (model_.processes[p].kind == Process::Kind::proxy) {
    const Posted& next = s.ports[model_.processes[p].port].front();
    return users_.moves_contended(model_.processes[next.process].steps[next.step]);
  }
  const Kind kind = step_of(s, p).kind;
  if (kind != Kind::sync && kind != Kind::meet) return leads_to_contended(s, p);
  const std::vector<size_t> all = meeting(s, p);
  return std::ranges::any_of(all, [&](size_t q) { return leads_to_contended(s, q); });
}

/// Is the step contended, or one of those that are done at once behind it?
bool Explorer::leads_to_contended(const State& s, size_t p) const {
  const std::vector<Step>& steps = model_.processes[p].steps;
  size_t i = s.processes[p].step;
  if (users_.contended(steps[i])) return true;
  while (++i < steps.size() && !steps[i].stands_alone()) {
    if (users_.contended(steps[i])) return true;
  }
  return false;
}

/// Takes all transitions whose place does not matter.
void Explorer::go_on_alone(State& s, const Hiding* held) {
  for (size_t p = 0; p < model_.processes.size() && found_.verdict == Verdict::right;) {
    if (enabled(s, p) && !is(held, s, p) && !contended(s, p)) {
      take(s, p);
      p = 0;
    } else {
      ++p;
    }
  }
}

/// The processes to go on with, in every order. If all that contend with each other can move, what
/// others do neither adds to them nor comes in between: they alone will do.
std::vector<size_t> Explorer::choices(const State& s, const Hiding* held) const {
  const auto can_move = [&](size_t p) { return enabled(s, p) && !is(held, s, p); };
  if (options_.reduced) {
    for (const std::vector<size_t>& circle : users_.circles()) {
      if (std::ranges::all_of(circle, can_move)) return circle;
    }
  }
  std::vector<size_t> all;
  for (size_t p = 0; p < model_.processes.size(); ++p) {
    if (can_move(p)) all.push_back(p);
  }
  return all;
}

// ---- the search

/// All interleavings, or those of a reduced search in which one step is put off.
void Explorer::search(const Hiding* held) {
  std::vector<State> open = {start()};
  if (options_.reduced) go_on_alone(open.back(), held);
  std::set<Digest> seen = {open.back().digest()};
  while (!open.empty() && found_.verdict == Verdict::right) {
    const State s = std::move(open.back());
    open.pop_back();
    bool any = false;
    const auto go = [&](size_t p) {
      any = true;
      State next = s;
      take(next, p);
      if (options_.reduced) go_on_alone(next, held);
      if (seen.insert(next.digest()).second) open.push_back(std::move(next));
    };
    for (const size_t p : choices(s, held)) go(p);
    if (!any && held != nullptr && is(held, s, held->process) && enabled(s, held->process)) {
      go(held->process);
    }
    if (!any && !finished(s)) fail(Verdict::deadlock, "nothing can move");
    if (seen.size() > options_.most_states) fail(Verdict::too_large, "too many states");
  }
  found_.states += seen.size();
}

Exploration Explorer::run() {
  if (model_.events * options_.calls > kMostEvents) {
    return {Verdict::too_large, "too many accesses"};
  }
  search(nullptr);
  if (!options_.reduced) return found_;
  for (const Hiding& step : hiding_steps()) {
    if (found_.verdict == Verdict::right) search(&step);
  }
  return found_;
}

}  // namespace

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"right", "wrong data",  "deadlock",
                                         "race",  "unsupported", "too large"};
  return kNames[static_cast<size_t>(verdict)];
}

Exploration explore(const Program& program, const ExploreOptions& options) {
  if (!can_model(program)) return {Verdict::unsupported, "pipelines of different lengths"};
  Exploration all;
  for (uint32_t teller = 0; teller < kLanes && all.verdict == Verdict::right; ++teller) {
    const Exploration one = Explorer(program, options, teller).run();
    all = {one.verdict, one.reason, all.states + one.states, all.same_bits || one.same_bits};
  }
  return all;
}

}  // namespace mscclc
