#include "tests/explore/explore.h"

#include <algorithm>
#include <set>
#include <span>

#include "ir/program/applied.h"
#include "tests/explore/explorer.h"
#include "tests/explore/rows_apart.h"

namespace mscclc {
namespace explorer {

using Kind = Step::Kind;

namespace {

/// Can the second of the queue be done before the first? Both put, to other places: a signal comes
/// after all puts, and puts to one place keep their order.
bool may_overtake(const Model& model, const std::vector<Posted>& queue) {
  if (queue.size() < 2) return false;
  std::set<uint32_t> places;
  for (const Posted& posted : std::span(queue).first(2)) {
    const Step& step = model.processes[posted.process].steps[posted.step];
    if (step.elements.empty()) return false;
    for (const Element& e : step.elements) {
      for (const Cell& to : e.dsts) {
        if (!places.insert(to.at(posted.call)).second) return false;
      }
    }
  }
  return true;
}

/// How often a call posts to a port.
uint32_t posts_to(const Model& model, uint32_t port) {
  uint32_t posts = 0;
  for (const Process& process : model.processes) {
    posts += static_cast<uint32_t>(std::ranges::count_if(process.steps, [&](const Step& step) {
      return step.kind == Kind::post && step.index == port;
    }));
  }
  return posts;
}

}  // namespace

State Explorer::start() const {
  State s;
  s.processes.resize(model_.processes.size());
  s.cells.resize(model_.cells);
  s.channels.resize(model_.channels);
  for (uint32_t c = 0; c < model_.channels; ++c) s.channels[c].arrived.resize(model_.credits[c]);
  s.ports.resize(model_.channels);
  s.flags.resize(model_.flags.size());
  s.entries.resize(options_.calls * program_.ranks.size());
  for (const uint32_t value : model_.initial) {
    s.semaphores.emplace_back().value = static_cast<uint16_t>(value);
  }
  return s;
}

// ---- steps

/// The processes that take a step together, if all of them are there.
std::vector<size_t> Explorer::meeting(const State& s, size_t p) const {
  const Process& own = model_.processes[p];
  const Step& step = step_of(s, p);
  std::vector<size_t> all;
  size_t members = kStrands;
  if (step.kind == Kind::meet) members = model_.barriers[step.index].blocks.size();
  for (size_t q = 0; q < model_.processes.size(); ++q) {
    const Process& other = model_.processes[q];
    if (other.kind != Process::Kind::strand || other.rank != own.rank) continue;
    if (step.kind == Kind::sync && other.block != own.block) continue;
    if (s.processes[q].call == options_.calls) continue;
    const Step& theirs = step_of(s, q);
    if (theirs.kind == step.kind && theirs.index == step.index) all.push_back(q);
  }
  if (all.size() != members) all.clear();
  return all;
}

bool Explorer::strands_gone(const State& s, uint32_t rank, uint32_t call) const {
  for (size_t q = 0; q < model_.processes.size(); ++q) {
    const Process& p = model_.processes[q];
    const bool works = p.kind == Process::Kind::strand || p.kind == Process::Kind::other;
    if (works && p.rank == rank && s.processes[q].call <= call) return false;
  }
  return true;
}

bool Explorer::enabled(const State& s, size_t p) const {
  const ProcessState& state = s.processes[p];
  const Process& process = model_.processes[p];
  if (process.kind == Process::Kind::proxy) {
    const std::vector<Posted>& queue = s.ports[process.port];
    return process.overtakes ? may_overtake(model_, queue) : !queue.empty();
  }
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
    case Kind::await:
      return is_raised(s, step.index, state.call);
    case Kind::raise:
    case Kind::take:
      return may_go(s, process, step, state.call);
    case Kind::post:
      return s.ports[step.index].size() < kQueue;
    case Kind::flush:
      return s.ports[step.index].empty();
    case Kind::end:
      return strands_gone(s, process.rank, state.call);
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

/// Does what the process's step is, without going past it.
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
      return signal(s.channels[step.index], step.relaxed ? nullptr : &state.knows,
                    entry(s, model_.processes[p].rank, state.call));
    case Kind::wait: {
      Counter& c = s.channels[step.index];
      const Published& news = c.arrived[c.value];
      if (!step.relaxed) state.knows.join(news.strong);
      state.knows.done |= news.weak;
      ++c.value;
      return;
    }
    case Kind::release:
      signal(s.semaphores[step.index], &state.knows, {});
      ++s.semaphores[step.index].value;
      return;
    case Kind::acquire:
      return acquire(s.semaphores[step.index], step.index, state.knows);
    case Kind::await:
      return state.knows.join(s.flags[step.index].knows);
    case Kind::notify:
      s.flags[step.index].knows.join(state.knows);
      ++s.flags[step.index].raised;
      return;
    case Kind::raise:
      return raise(s, model_.processes[p], step, state);
    case Kind::take:
      return take_region(s, model_.processes[p], step, state);
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
      return hear(s, step, state.call, state.knows);
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
    if (process.kind == Process::Kind::proxy && !process.overtakes)
      times = posts_to(model_, process.port);
    for (uint32_t i = 0; i < times * options_.calls; ++i) {
      for (uint32_t step = 0; step < process.steps.size(); ++step) all.push_back({p, i, step});
    }
  }
  return all;
}

/// Must the process's next transition be tried before and after what others do?
bool Explorer::contended(const State& s, size_t p) const {
  if (model_.processes[p].kind == Process::Kind::proxy) {
    const Posted& next = s.ports[model_.processes[p].port][model_.processes[p].overtakes ? 1 : 0];
    return users_.moves_contended(model_.processes[next.process].steps[next.step]);
  }
  const Kind kind = step_of(s, p).kind;
  if (kind != Kind::sync && kind != Kind::meet) return leads_to_contended(s, p);
  const std::vector<size_t> all = meeting(s, p);
  return std::ranges::any_of(all, [&](size_t q) { return leads_to_contended(s, q); });
}

/// Is the step contended, or one of those that are done at once after it?
bool Explorer::leads_to_contended(const State& s, size_t p) const {
  const std::vector<Step>& steps = model_.processes[p].steps;
  size_t i = s.processes[p].step;
  if (users_.contended(steps[i])) return true;
  while (++i < steps.size() && !steps[i].stands_alone()) {
    if (users_.contended(steps[i])) return true;
  }
  return false;
}

/// In a reduced search a put is overtaken where it is put off: else it is none the later for that.
bool Explorer::can_move(const State& s, size_t p, const Hiding* held) const {
  if (!enabled(s, p) || is(held, s, p)) return false;
  return !model_.processes[p].overtakes || !options_.reduced || is(held, s, p - 1);
}

/// Takes all transitions whose place does not matter.
void Explorer::go_on_alone(State& s, const Hiding* held) {
  for (size_t p = 0; p < model_.processes.size() && found_.verdict == Verdict::right;) {
    if (can_move(s, p, held) && !contended(s, p)) {
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
  const auto moves = [&](size_t p) { return can_move(s, p, held); };
  if (options_.reduced) {
    for (const std::vector<size_t>& circle : users_.circles()) {
      if (std::ranges::all_of(circle, moves)) return circle;
    }
  }
  std::vector<size_t> all;
  for (size_t p = 0; p < model_.processes.size(); ++p) {
    if (moves(p)) all.push_back(p);
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
  if (model_.events * options_.calls > std::min(options_.most_events, kMaxEvents)) {
    return {Verdict::too_large, "too many accesses"};
  }
  search(nullptr);
  if (!options_.reduced) return found_;
  for (const Hiding& step : hiding_steps()) {
    if (found_.verdict == Verdict::right) search(&step);
  }
  return found_;
}

}  // namespace explorer

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"right", "wrong data",  "deadlock",
                                         "race",  "unsupported", "too large"};
  return kNames[static_cast<size_t>(verdict)];
}

/// Of rows that are a cell: 16 bytes in the narrowest type.
constexpr uint32_t kColumns = 8;

Exploration explore(const Program& program, const ExploreOptions& options) {
  using namespace explorer;
  if (options.rows_apart) {
    const Program apart = rows_apart(program);
    ExploreOptions as_it_is = options;
    as_it_is.rows_apart = false;
    return explore(apart, as_it_is);
  }
  if (!can_model(program)) return {Verdict::unsupported, "an op over other chunks than its loop"};
  const uint32_t columns = program.contract.columns;
  if (columns != 0 && columns != kColumns) return {Verdict::unsupported, "rows of several cells"};
  if (options.order && bind_then(program)) return {Verdict::unsupported, "bits of row functions"};
  Exploration all;
  for (const Serving serving : kServings) {
    if (all.verdict != Verdict::right) break;
    std::optional<Model> model = make_model(program, options, serving);
    if (!model) return {Verdict::too_large, "too many steps"};
    const Exploration one = Explorer(program, options, std::move(*model)).run();
    all = {one.verdict, one.reason, all.states + one.states, all.same_bits || one.same_bits};
  }
  return all;
}

}  // namespace mscclc
