#include "tools/bench/table_run.h"

#include <fmt/format.h>

#include "tools/bench/measure/clock.h"
#include "tools/bench/support/statistics.h"
#include "tools/io/result_table.h"

namespace mscclc::bench {

void Bench::at(std::string_view what) const {
  if (communicator.rank() == 0) run.watch.begin(what);
}

bool Bench::broke_off() const {
  Diagnostics said;
  if (communicator.check(said)) return false;
  fmt::print(stderr, "{}", render_text(said, Sources{}));
  return true;
}

bool Bench::end(Diagnostics& diagnostics) const {
  (void)communicator.check(diagnostics);
  fmt::print(stderr, "{}", render_text(diagnostics, Sources{}));
  return false;
}

void TableRun::at(const Contender& contender, const Workload& w) const {
  bench_.at(fmt::format("{}, {} of {} bytes, {}, {}{}", contender.name(), name(table_.kind),
                        w.bytes, info(table_.dtype).name, table_.graph ? "CUDA graph" : "eager",
                        w.in_place ? ", in place" : ""));
}

void TableRun::leave_out(const Contender& contender, const std::string& why,
                         const Workload& w) const {
  bench_.log.leave_out(contender.name(), table_.blank.collective, why, &w);
}

/// What a plan's blocks were doing when.
bool TableRun::show_clocks(Timed& timed, const Contender& contender, Diagnostics& diagnostics) {
  if (bench_.clocks == nullptr || contender.role() != Role::plan) return true;
  std::string text;
  const auto unit = [&](Diagnostics& d) { return timed.run_unit(d); };
  if (!bench_.clocks->read(unit, bench_.stream, text, diagnostics)) return false;
  bench_.log.print(fmt::format("# {}: cycles of rank 0's blocks\n{}", contender.name(), text));
  if (options_.between == 0) return true;
  const auto around = [&](Diagnostics& d) { return timed.run(Around::once, d); };
  if (!bench_.clocks->read(around, bench_.stream, text, diagnostics)) return false;
  bench_.log.print(fmt::format("# {}: the same between other kernels\n{}", contender.name(), text));
  return true;
}

Result& TableRun::row_of(const Workload& w, const Contender& contender,
                         std::vector<Result>& rows) const {
  for (Result& row : rows) {
    if (row.who == contender.name()) return row;
  }
  Result row = table_.blank;
  row.bytes = w.bytes;
  row.count = w.part / info(table_.dtype).bytes;
  row.who = contender.name();
  row.role = contender.role();
  row.ordered_by = contender.ordered_by();
  rows.push_back(row);
  return rows.back();
}

void TableRun::first_call(Contender& contender) {
  if (!bench_.called.insert(contender.name()).second) return;
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  const bool done = contender.launch(bench_.stream, diagnostics) &&
                    bench_.communicator.synchronize(bench_.stream, diagnostics);
  const bool plan = contender.role() == Role::plan;
  if (!done) return;  // the check reports it
  bench_.log.start_up("first call of " + contender.name(), milliseconds_since(begin),
                      !plan || !bench_.shown_first_plan);
  bench_.shown_first_plan |= plan;
}

/// Prepares a contender. All ranks take part, or none does: one alone would wait forever. False:
/// the run must end.
bool TableRun::prepare(Contender& contender, const Workload& w, bool& takes_part) {
  takes_part = false;
  Diagnostics diagnostics;
  uint64_t ranks = contender.prepare(w, diagnostics) ? 1 : 0;
  auto unable =
      any_unable(bench_.communicator, ranks != 0 || !diagnostics.has_errors(), diagnostics);
  if (!unable) {
    if (!sum_over_ranks(bench_.communicator, ranks, diagnostics)) return bench_.end(diagnostics);
    takes_part = ranks == bench_.communicator.size();
    if (takes_part || ranks == 0) return true;
    unable =
        Error{fmt::format("{} of {} ranks would take part", ranks, bench_.communicator.size())};
  }
  leave_out(contender, unable->text(), w);
  return !bench_.broke_off();
}

/// Prepares a contender and checks its results. False: the run must end.
bool TableRun::try_out(Contender& contender, const Workload& w, std::vector<Result>& rows,
                       bool& takes_part) {
  if (!prepare(contender, w, takes_part)) return false;
  if (!takes_part) return true;
  first_call(contender);
  return check(
      contender, w, [&](Diagnostics& d) { return contender.launch(bench_.stream, d); }, "", rows,
      takes_part);
}

/// Compares what `launch` leaves. False: the run must end.
bool TableRun::check(Contender& contender, const Workload& w, const Checker::Launch& launch,
                     const std::string& when, std::vector<Result>& rows, bool& right) {
  right = true;
  if (options_.check == 0 || !contender.has_results()) return true;
  Diagnostics diagnostics;
  uint64_t wrong = 0;
  const bool ran = bench_.checker->check(launch, w, wrong, diagnostics);
  const auto unable = any_unable(bench_.communicator, ran && wrong == 0, diagnostics);
  right = !unable;
  if (bench_.broke_off()) return false;
  if (!sum_over_ranks(bench_.communicator, wrong, diagnostics)) return bench_.end(diagnostics);
  Result& row = row_of(w, contender, rows);
  std::optional<Times>& times = w.in_place ? row.in_place : row.out_of_place;
  if (!times) times.emplace();
  times->checked = ran;
  times->wrong = wrong;
  if (right) return true;
  times->time = 0;
  const std::string why = unable->text();
  leave_out(contender, wrong > 0 ? fmt::format("{} wrong elements{}: {}", wrong, when, why) : why,
            w);
  return true;
}

/// Makes what stands around calls, if they are to be timed so. False: the run must end.
bool TableRun::surround(const Workload& w, std::optional<Surroundings>& surroundings) const {
  if (options_.between == 0) return true;
  Diagnostics diagnostics;
  surroundings = Surroundings::of(w, bench_.communicator.rank(), options_, diagnostics);
  if (!any_unable(bench_.communicator, surroundings.has_value(), diagnostics)) return true;
  return bench_.end(diagnostics);
}

/// Those that take part, ready to be timed. False: the run must end.
bool TableRun::start_all(const Workload& w, const std::optional<Surroundings>& surroundings,
                         std::vector<Result>& rows, std::vector<Taking>& taking) {
  const Batch batch = batch_of(options_, w.bytes, table_.graph);
  for (Contender* contender : table_.contenders) {
    bool takes_part = false;
    at(*contender, w);
    if (!try_out(*contender, w, rows, takes_part)) return false;
    if (!takes_part) continue;
    taking.emplace_back();
    Taking& t = taking.back();
    t.contender = contender;
    t.timed = std::make_unique<Timed>(*contender, bench_.stream, batch, arounds_, surroundings);
    t.good = t.timed->start(t.trouble);
    bool stays = false;
    if (!stays_in(t, w, stays)) return false;
    if (!stays) taking.pop_back();
  }
  return true;
}

/// Has all gone well so far, on all ranks? A contender in trouble is left out. False: the run must
/// end.
bool TableRun::stays_in(const Taking& t, const Workload& w, bool& stays) {
  const auto unable = any_unable(bench_.communicator, t.good, t.trouble);
  stays = !unable;
  if (unable) leave_out(*t.contender, unable->text(), w);
  return stays || !bench_.broke_off();
}

/// A batch of each in turn, and again. A rank in trouble still meets the others.
void TableRun::time_all(const Workload& w, std::vector<Taking>& taking) {
  for (uint32_t i = 0; i < options_.repeats * arounds_; ++i) {
    const uint32_t around = i % arounds_;
    for (Taking& t : taking) {
      at(*t.contender, w);
      double time = 0;
      if (t.good) {
        t.good = t.timed->repeat(bench_.run.barrier, static_cast<Around>(around), time, t.trouble);
      } else {
        bench_.run.barrier.meet();
      }
      t.times[around].push_back(time);
    }
  }
}

bool TableRun::measure(const Workload& w, std::vector<Result>& rows) {
  std::optional<Surroundings> surroundings;
  std::vector<Taking> taking;
  if (!surround(w, surroundings)) return false;
  if (!start_all(w, surroundings, rows, taking)) return false;
  time_all(w, taking);
  for (Taking& t : taking) {
    at(*t.contender, w);
    bool stays = false;
    if (!stays_in(t, w, stays)) return false;
    if (!stays) continue;
    t.good = t.timed->units(bench_.run.barrier, t.units, t.trouble);
    if (!stays_in(t, w, stays)) return false;
    if (stays && !finish(w, t, rows)) return false;
  }
  return !bench_.broke_off();
}

/// Times of all ranks, and whether results are right once they were taken. False: the run must end.
bool TableRun::finish(const Workload& w, Taking& t, std::vector<Result>& rows) {
  Diagnostics diagnostics;
  if (!slowest_of_ranks(bench_.communicator, t.units, diagnostics)) return bench_.end(diagnostics);
  for (uint32_t i = 0; i < arounds_; ++i) {
    if (!slowest_of_ranks(bench_.communicator, t.times[i], diagnostics))
      return bench_.end(diagnostics);
  }
  if (!show_clocks(*t.timed, *t.contender, diagnostics)) return bench_.end(diagnostics);
  Result& row = row_of(w, *t.contender, rows);
  std::optional<Times>& times = w.in_place ? row.in_place : row.out_of_place;
  if (!times) times.emplace();
  times->time = quantile(t.times[0], 0.5);
  times->p50 = quantile(t.units, 0.5);
  times->p99 = quantile(t.units, 0.99);
  const auto cost = [&](Around once, Around twice) {
    return quantile(
        added_cost(t.times[static_cast<size_t>(once)], t.times[static_cast<size_t>(twice)]), 0.5);
  };
  if (arounds_ > 1) times->between = cost(Around::once, Around::twice);
  if (arounds_ == kArounds) times->between_early = cost(Around::early_once, Around::early_twice);
  // Of calls back to back the last must still have the first one's input.
  return w.in_place || !t.contender->keeps_input() || check_repeated(w, t, rows);
}

/// Checks what calls leave as they were timed. False: the run must end.
bool TableRun::check_repeated(const Workload& w, Taking& t, std::vector<Result>& rows) {
  bool right = true;
  const auto unit = [&](Diagnostics& d) { return t.timed->run_unit(d); };
  if (!check(*t.contender, w, unit, " after calls back to back", rows, right)) return false;
  for (const auto& [around, when] :
       {std::pair{Around::once, " between other kernels"},
        {Around::early_once, " between other kernels that let the next begin early"}}) {
    if (!right || static_cast<uint32_t>(around) >= arounds_) break;
    const auto run = [&, around = around](Diagnostics& d) { return t.timed->run(around, d); };
    if (!check(*t.contender, w, run, when, rows, right)) return false;
  }
  return true;
}

}  // namespace mscclc::bench
