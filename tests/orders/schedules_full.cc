// The contracts about the bits of sums (docs/bits.md) under many schedules: every plan that the
// library picks for a reduction under a contract, on one node and on several, small messages, bit
// for bit against what the contract promises. Takes hours; run by hand:
//
//   bazel run //tests/orders:schedules_full -- --jobs 16
//   bazel run //tests/orders:schedules_full -- --only 'allreduce_push R=4'
//   bazel run //tests/orders:schedules_full -- --list
//
// A piece of the work is 100 schedules of a row in one world. Reads plans/.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "tests/library/library.h"
#include "tests/long_run/long_run.h"
#include "tests/orders/ordered_rows.h"
#include "tools/io/library.h"

namespace {

using namespace mscclc;
using testing::OrderedRow;

enum Count : size_t { kSchedules, kRows, kWrong, kFirstOrder };

std::vector<std::string> count_names() {
  std::vector<std::string> names = {"schedules", "rows", "wrong"};
  for (const ProvedOrder& proved : kProvedOrders) names.emplace_back(name(proved.order));
  return names;
}

std::vector<OrderedRow> all_rows(const LibraryTable& table, const std::string& only) {
  std::vector<OrderedRow> rows;
  for (const testing::OrderedWorld& world : testing::ordered_worlds()) {
    for (OrderedRow& row : testing::ordered_rows(table, world)) {
      if (row.text().find(only) != std::string::npos) rows.push_back(std::move(row));
    }
  }
  return rows;
}

constexpr uint64_t kSchedulesOfPiece = 100;

void try_row(const OrderedRow& row, const testing::ScheduleRange& schedules, Counts counts) {
  const CompiledWorld world(row.program, row.defines);
  testing::ScheduleCounts done;
  std::string fault = world.errors();
  if (fault.empty()) {
    fault = testing::broken_by_schedules(world.program(), row, schedules, done);
  }
  counts[kRows] += schedules.first == 0;
  counts[kSchedules] += done.schedules;
  for (size_t i = 0; i < kProvedOrders.size(); ++i) {
    counts[kFirstOrder + i] += done.kept[static_cast<size_t>(kProvedOrders[i].order)];
  }
  if (fault.empty()) return;
  ++counts[kWrong];
  fmt::print("{}\n", fault);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("contracts about the bits of sums, under many schedules");
  LongRun long_run;
  uint64_t schedules = 1000;
  std::string only;
  bool list = false;
  add_long_run_options(app, long_run);
  app.add_option("--schedules", schedules, "of each row (default 1000)")->type_name("N");
  app.add_option("--only", only, "rows with this in \"program parameters: contracts\"")
      ->type_name("TEXT");
  app.add_flag("--list", list, "only list the rows, each with its first piece");
  CLI11_PARSE(app, argc, argv);
  if (!enter_repository()) return 2;
  Diagnostics diagnostics;
  const std::optional<Library> library = open_library("plans", diagnostics);
  if (!library) {
    fmt::print("{}", render_text(diagnostics, Sources{}));
    return 2;
  }
  const std::vector<OrderedRow> rows = all_rows(library->table, only);
  const uint64_t pieces_of_row = (schedules + kSchedulesOfPiece - 1) / kSchedulesOfPiece;
  for (size_t i = 0; list && i < rows.size(); ++i) {
    fmt::print("{} {}\n", i * pieces_of_row, rows[i].text());
  }
  if (list) return 0;
  const std::vector<std::string> names = count_names();
  const auto work = [&](uint64_t piece, Counts counts) {
    const uint64_t first = piece % pieces_of_row * kSchedulesOfPiece;
    try_row(rows[piece / pieces_of_row], {first, std::min(kSchedulesOfPiece, schedules - first)},
            counts);
  };
  const uint64_t pieces = rows.size() * pieces_of_row;
  const LongRunResult result = run_pieces(long_run, pieces, names, [&]() -> Work { return work; });
  fmt::print("{}", summary(result, pieces, names));
  return exit_status(result, kWrong);
}
