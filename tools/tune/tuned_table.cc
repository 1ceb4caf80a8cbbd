#include "tools/tune/tuned_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/cost/explanation.h"

namespace mscclc::tune {
namespace {

constexpr double kJump = 1.5;

/// What a row of the new table is for.
LibraryRow row_of(const SizeResult& result) {
  LibraryRow row = result.best.row;
  row.min_ranks = row.max_ranks = result.call.ranks;
  row.min_nodes = row.max_nodes = 1;
  row.bytes = result.call.bytes;
  restrict_by_format(row);
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
      if (i + 1 < sizes.size() && alike(row, row_of(sizes[i + 1]))) continue;
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

std::string results_text(const std::vector<SizeResult>& results) {
  if (results.empty()) return "";
  const LibraryCall& call = results.front().call;
  std::string text =
      fmt::format("{} over {} ranks, {}\n{:>10} {:>12} {:>12} {:>7}  plan\n", name(call.kind),
                  call.ranks, info(call.dtype).name, "size", "library, us", "tuned, us", "gain");
  for (const SizeResult& r : results) {
    const std::string size = cost::size_text(r.call.bytes);
    if (r.best.ns == 0) {
      text += fmt::format("{:>10} {:>12} {:>12} {:>7}  none that could be timed\n", size, "-", "-",
                          "-");
      continue;
    }
    const bool both = r.library.ns > 0;
    const std::string library = both ? fmt::format("{:.2f}", r.library.ns / 1e3) : "-";
    const std::string gain =
        both ? fmt::format("{:.0f} %", 100 * (1 - r.best.ns / r.library.ns)) : "-";
    text += fmt::format("{:>10} {:>12} {:>12.2f} {:>7}  {}\n", size, library, r.best.ns / 1e3, gain,
                        text_of(r.best.row.choice));
  }
  for (const Jump& jump : jumps(results)) {
    text += fmt::format("time jumps from {} to {}: {:.2f} to {:.2f} us, by {}\n",
                        cost::size_text(jump.from), cost::size_text(jump.to), jump.from_ns / 1e3,
                        jump.to_ns / 1e3, jump.plan);
  }
  for (const SizeResult& r : results) {
    for (const std::string& plan : r.wrong) {
      text += fmt::format("WRONG RESULTS at {}: {}\n", cost::size_text(r.call.bytes), plan);
    }
  }
  return text;
}

}  // namespace mscclc::tune
