#include "tools/tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "ir/diagnostics/first_message.h"

namespace mscclc::tune {
namespace {

/// Rows of the table that are tried besides the library's own pick, and what the model finds.
constexpr size_t kStarts = 4;
constexpr uint64_t kAnySize = ~uint64_t{0};

std::string format_of(const LibraryChoice& choice) {
  for (const auto& [name, value] : choice.params) {
    if (name == "F") return value;
  }
  return "";
}

}  // namespace

/// A size that is being looked at.
struct Tuner::Search {
  LibraryCall call;
  SizeResult result;
  std::set<std::string> tried;
  double least_predicted = std::numeric_limits<double>::infinity();
};

/// What is timed: a row's plan, or NCCL in its place.
struct Tuner::Turn {
  const LibraryRow& row;
  bool nccl = false;
  std::vector<double> ns = {};  ///< of those passes that were good
};

std::optional<Trial> Tuner::try_out(const LibraryCall& call, const Turn& turn, uint32_t pass,
                                    Diagnostics& diagnostics) {
  const LibraryRow& row = turn.row;
  const std::string plan = turn.nccl ? timer_.nccl() : text_of(row.choice);
  if (const Trial* known = log_.find(call, plan, pass)) return *known;
  Diagnostics why;
  const auto taken = timer_.time({.plan = plans_.of(row.choice, call).program,
                                  .bytes = call.bytes,
                                  .dtype = call.dtype,
                                  .nccl = turn.nccl},
                                 why);
  if (timer_.broken()) {
    for (const Diagnostic& d : why.all()) diagnostics.add(d);
    return std::nullopt;
  }
  Trial trial;
  if (taken) {
    trial.ns = taken->wrong == 0 ? taken->ns : 0;
    trial.wrong = taken->wrong;
  } else {
    trial.why = first_message(why, "it could not be timed");
  }
  if (!log_.add(call, plan, pass, trial)) return std::nullopt;
  return trial;
}

/// The library's own, unless it says of itself what is not so.
const LibraryRow* Tuner::picked(const LibraryCall& call) {
  for (const LibraryRow& row : table_.rows()) {
    if (row.fits(call) && plans_.predict(row.choice, call)) return &row;
  }
  return nullptr;
}

/// The best that the model knows of a row's program, one changed parameter after the other.
LibraryRow Tuner::descend(LibraryRow row, const LibraryCall& call) {
  double least = plans_.predict(row.choice, call).value_or(0);
  for (std::optional<LibraryRow> better = std::move(row); better;) {
    row = *std::exchange(better, std::nullopt);
    std::vector<LibraryRow> others = neighbours(row, call, limits_, true);
    std::ranges::move(extended(row), std::back_inserter(others));
    for (LibraryRow& other : others) {
      const auto predicted = plans_.predict(other.choice, call);
      if (!predicted || *predicted >= least) continue;
      least = *predicted;
      better = std::move(other);
    }
  }
  return row;
}

/// What was best for the size before; rows that would serve the call if it had another size, and
/// what the model makes of the best of each program and format.
std::vector<LibraryRow> Tuner::starts(const LibraryCall& call, const LibraryRow* last) {
  struct Start {
    double predicted;
    LibraryRow row;
  };
  std::vector<Start> all;
  std::set<std::string> seen;
  const auto add = [&](const LibraryRow& row) {
    if (!seen.insert(text_of(row.choice)).second) return;
    const auto predicted = plans_.predict(row.choice, call);
    if (predicted) all.push_back({*predicted, row});
  };
  const auto keep_best = [&](size_t most) {
    std::ranges::stable_sort(all, {}, &Start::predicted);
    if (all.size() > most) all.resize(most);
  };
  for (LibraryRow row : table_.rows()) {
    row.bytes = kAnySize;
    if (row.fits(call)) add(row);
  }
  std::ranges::stable_sort(all, {}, &Start::predicted);
  std::set<std::string> families;
  std::vector<LibraryRow> descended;
  for (const Start& start : all) {
    const LibraryChoice& choice = start.row.choice;
    if (families.insert(choice.program + format_of(choice)).second) {
      descended.push_back(descend(start.row, call));
    }
  }
  keep_best(kStarts);
  for (const LibraryRow& row : descended) add(row);
  keep_best(2 * kStarts);
  std::vector<LibraryRow> rows;
  if (last != nullptr) rows.push_back(*last);
  for (Start& start : all) rows.push_back(std::move(start.row));
  return rows;
}

/// Measures what has not been, what the model thinks best of first, as long as there are trials.
bool Tuner::try_all(Search& search, const std::vector<LibraryRow>& rows, Diagnostics& diagnostics) {
  std::vector<std::pair<double, const LibraryRow*>> order;
  for (const LibraryRow& row : rows) {
    if (search.tried.contains(text_of(row.choice))) continue;
    const auto predicted = plans_.predict(row.choice, search.call);
    if (!predicted) continue;
    search.least_predicted = std::min(search.least_predicted, *predicted);
    order.emplace_back(*predicted, &row);
  }
  std::ranges::stable_sort(order, {}, [](const auto& entry) { return entry.first; });
  SizeResult& result = search.result;
  for (const auto& [predicted, row] : order) {
    if (predicted > options_.prune * search.least_predicted) break;
    if (result.trials >= options_.trials) break;
    if (!search.tried.insert(text_of(row->choice)).second) continue;
    const auto trial = try_out(search.call, {*row}, 0, diagnostics);
    if (!trial) return false;
    ++result.trials;
    if (trial->wrong > 0) result.wrong.push_back(text_of(row->choice));
    if (!trial->good()) continue;
    result.tried.push_back({predicted, trial->ns});
    if (result.best.ns == 0 || trial->ns < result.best.ns) result.best = {*row, trial->ns};
  }
  return true;
}

/// Times several in turn, so that what disturbs the machine disturbs all of them alike.
bool Tuner::take_turns(Search& search, std::vector<Turn>& turns, Diagnostics& diagnostics) {
  for (uint32_t pass = 1; pass <= options_.comparisons; ++pass) {
    for (Turn& turn : turns) {
      const auto trial = try_out(search.call, turn, pass, diagnostics);
      if (!trial) return false;
      if (trial->good()) turn.ns.push_back(trial->ns);
      if (trial->wrong == 0) continue;
      search.result.wrong.push_back(turn.nccl ? timer_.nccl() : text_of(turn.row.choice));
    }
  }
  return true;
}

/// Times what is best, what the library picks, and NCCL in turn: of many, the fastest was also
/// lucky.
bool Tuner::compare(Search& search, Diagnostics& diagnostics) {
  SizeResult& result = search.result;
  const Measured best = result.best, library = result.library;
  if (best.ns == 0) return true;
  const bool other = library.ns > 0 && best.row.choice != library.row.choice;
  std::vector<Turn> turns{{best.row}};
  if (other) turns.push_back({library.row});
  const bool nccl = !timer_.nccl().empty();
  if (nccl) turns.push_back({library.row, true});
  if (turns.size() == 1) return true;
  if (!take_turns(search, turns, diagnostics)) return false;
  if (nccl && !turns.back().ns.empty()) result.nccl_ns = median(turns.back().ns);
  const auto timed = [](const Turn& turn, double otherwise) {
    return turn.ns.empty() ? otherwise : median(turn.ns);
  };
  if (!other) {
    if (turns.front().ns.empty()) return true;
    result.best.ns = median(turns.front().ns);
    if (library.ns > 0) result.library.ns = result.best.ns;
    return true;
  }
  result.library.ns = timed(turns[1], library.ns);
  result.best.ns = timed(turns[0], best.ns);
  const bool relied_on = turns[0].ns.size() == options_.comparisons;
  const bool faster = result.best.ns <= result.library.ns * (1 - options_.gain);
  if (!relied_on || (!turns[1].ns.empty() && !faster)) result.best = result.library;
  return true;
}

std::optional<SizeResult> Tuner::tune_size(const LibraryCall& call, const LibraryRow* last,
                                           Diagnostics& diagnostics) {
  const LibraryRow* pick = picked(call);
  if (pick == nullptr) {
    diagnostics.error("no-plan", {},
                      fmt::format("the library has no row for {} over {} ranks that keeps '{}'",
                                  name(call.kind), call.ranks, name(call.order)));
    return std::nullopt;
  }
  Search search;
  search.call = search.result.call = call;
  SizeResult& result = search.result;
  result.library.row = *pick;
  if (!try_all(search, {*pick}, diagnostics)) return std::nullopt;
  result.library.ns = result.best.ns;
  if (!try_all(search, starts(call, last), diagnostics)) return std::nullopt;
  for (double before = 0; result.best.ns > 0 && before != result.best.ns;) {
    before = result.best.ns;
    const LibraryRow at = result.best.row;
    if (!try_all(search, neighbours(at, call, limits_), diagnostics)) return std::nullopt;
  }
  if (result.best.ns == 0) result.best.row = *pick;
  if (!compare(search, diagnostics)) return std::nullopt;
  return std::move(search.result);
}

std::optional<std::vector<SizeResult>> Tuner::tune(
    LibraryCall call, const std::vector<uint64_t>& sizes,
    const std::function<void(const LibraryCall&)>& each, Diagnostics& diagnostics) {
  std::vector<SizeResult> results;
  for (const uint64_t bytes : sizes) {
    call.bytes = bytes;
    each(call);
    const LibraryRow* last = results.empty() ? nullptr : &results.back().best.row;
    auto result = tune_size(call, last, diagnostics);
    if (!result) return std::nullopt;
    results.push_back(*std::move(result));
  }
  return results;
}

}  // namespace mscclc::tune
