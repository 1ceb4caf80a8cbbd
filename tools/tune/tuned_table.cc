#include "tools/tune/tuned_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/cost/explanation.h"

namespace mscclc::tune {
namespace {

constexpr double kJump = 1.5;
constexpr double kDiffer = 1.1;

/// What a row of the new table is for.
LibraryRow row_of(const SizeResult& result) {
  LibraryRow row = result.best.row;
  row.min_ranks = row.max_ranks = result.call.ranks;
  row.min_nodes = row.max_nodes = 1;
  row.bytes = result.call.bytes;
  // Other calls have faster plans.
  row.asked = order_matters(result.call) && result.call.order != kDefaultOrder;
  if (row.asked) row.order = result.call.order;
  restrict_by_format(row);
  return row;
}

/// What eager calls of the result's size are to have, where that is not for captured calls, which
/// were timed: what the library picks for them.
std::optional<LibraryRow> eager_row(const SizeResult& result, const LibraryTable& library) {
  if (!result.call.captured) return std::nullopt;
  LibraryCall eager = result.call;
  eager.captured = false;
  const auto rows = library.rows();
  const auto at = std::ranges::find_if(rows, [&](const LibraryRow& r) { return r.fits(eager); });
  if (at == rows.end() || at->captured) return std::nullopt;
  LibraryRow row = *at;
  row.min_ranks = row.max_ranks = result.call.ranks;
  row.min_nodes = row.max_nodes = 1;
  row.bytes = result.call.bytes;
  return row;
}

/// Do two rows differ by their sizes alone?
bool alike(const LibraryRow& a, const LibraryRow& b) {
  LibraryRow other = b;
  other.bytes = a.bytes;
  return a.covers(other) && other.covers(a) && a.choice == b.choice;
}

void add(std::vector<LibraryRow>& rows, LibraryRow row) {
  const auto covers = [&](const LibraryRow& earlier) { return earlier.covers(row); };
  if (std::ranges::none_of(rows, covers)) rows.push_back(std::move(row));
}

}  // namespace

std::vector<LibraryRow> tuned_rows(const std::vector<std::vector<SizeResult>>& results,
                                   const LibraryTable& library) {
  std::vector<LibraryRow> rows;
  std::vector<CollectiveKind> kinds;
  for (const std::vector<SizeResult>& sizes : results) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      LibraryRow row = row_of(sizes[i]);
      if (i == 0 && std::ranges::count(kinds, row.kind) == 0) kinds.push_back(row.kind);
      const auto eager = eager_row(sizes[i], library);
      const auto same_as_next = [&] {
        const auto next = eager_row(sizes[i + 1], library);
        const bool both = eager && next ? alike(*eager, *next) : !eager && !next;
        return both && alike(row, row_of(sizes[i + 1]));
      };
      if (i + 1 < sizes.size() && same_as_next()) continue;
      if (eager) add(rows, *eager);
      add(rows, std::move(row));
    }
  }
  for (const LibraryRow& row : library.rows()) {
    if (std::ranges::count(kinds, row.kind) > 0) add(rows, row);
  }
  return rows;
}

std::vector<Jump> jumps(const std::vector<SizeResult>& results) {
  std::vector<Jump> all;
  for (size_t i = 1; i < results.size(); ++i) {
    const SizeResult &before = results[i - 1], &here = results[i];
    if (before.best.ns == 0 || here.best.ns == 0 || before.call.bytes == 0) continue;
    const double grown = here.best.ns / before.best.ns;
    const double larger =
        static_cast<double>(here.call.bytes) / static_cast<double>(before.call.bytes);
    if (grown < kJump * larger || grown < kJump) continue;
    all.push_back({before.call.bytes, here.call.bytes, before.best.ns, here.best.ns,
                   text_of(here.best.row.choice)});
  }
  return all;
}

ModelPairs count_pairs(const std::vector<SizeResult>& results) {
  ModelPairs pairs;
  for (const SizeResult& r : results) {
    for (size_t i = 0; i < r.tried.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto& [faster, slower] = std::minmax(
            r.tried[i], r.tried[j], [](const Tried& a, const Tried& b) { return a.ns < b.ns; });
        if (slower.ns <= kDiffer * faster.ns) continue;
        ++pairs.all;
        pairs.right += faster.predicted < slower.predicted;
      }
    }
  }
  return pairs;
}

namespace {

std::string us_text(double ns) { return ns > 0 ? fmt::format("{:.2f}", ns / 1e3) : "-"; }

std::string share_text(double ns, double of) {
  return ns > 0 && of > 0 ? fmt::format("{:.0f} %", 100 * (1 - ns / of)) : "-";
}

std::string jumps_text(const std::vector<SizeResult>& results) {
  std::string text;
  for (const Jump& jump : jumps(results)) {
    text += fmt::format("time jumps from {} to {}: {:.2f} to {:.2f} us, by {}\n",
                        cost::size_text(jump.from), cost::size_text(jump.to), jump.from_ns / 1e3,
                        jump.to_ns / 1e3, jump.plan);
  }
  return text;
}

}  // namespace

std::string results_text(const std::vector<SizeResult>& results) {
  if (results.empty()) return "";
  const LibraryCall& call = results.front().call;
  std::string text =
      fmt::format("{} over {} ranks, {}\n{:>10} {:>12} {:>12} {:>7} {:>12} {:>7}  {}\n",
                  name(call.kind), call.ranks, info(call.dtype).name, "size", "library, us",
                  "tuned, us", "gain", "NCCL, us", "gain", "plan");
  size_t compared = 0, faster = 0;
  for (const SizeResult& r : results) {
    const double ns = r.best.ns;
    text +=
        fmt::format("{:>10} {:>12} {:>12} {:>7} {:>12} {:>7}  {}\n", cost::size_text(r.call.bytes),
                    us_text(ns > 0 ? r.library.ns : 0), us_text(ns), share_text(ns, r.library.ns),
                    us_text(r.nccl_ns), share_text(ns, r.nccl_ns),
                    ns > 0 ? text_of(r.best.row.choice) : "none that could be timed");
    compared += ns > 0 && r.nccl_ns > 0;
    faster += ns > 0 && r.nccl_ns > ns;
  }
  if (compared > 0) text += fmt::format("faster than NCCL at {} of {} sizes\n", faster, compared);
  text += jumps_text(results);
  for (const SizeResult& r : results) {
    for (const std::string& plan : r.wrong) {
      text += fmt::format("WRONG RESULTS at {}: {}\n", cost::size_text(r.call.bytes), plan);
    }
  }
  return text;
}

}  // namespace mscclc::tune
