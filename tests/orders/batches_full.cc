// A row inside batches of 1 to 512 rows (docs/bits.md), in all plans that the library picks for
// sums under a contract, at 2 to 8 ranks, of four types: the same bits in each, and in all of a
// contract. Takes hours; run by hand:
//
//   bazel run //tests/orders:batches_full -- --jobs 4
//   bazel run //tests/orders:batches_full -- --list
//
// A piece of the work is a plan with rows of one type and width: narrow ones in batches of every
// number of rows, and wide ones, up to 64 MiB, in eight. Reads plans/.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "tests/library/library.h"
#include "tests/long_run/long_run.h"
#include "tests/orders/plan_batches.h"
#include "tools/io/library.h"

namespace {

using namespace mscclc;
using testing::KnownRows;
using testing::OrderedRow;
using testing::RowBatches;

const std::vector<std::string> kNames = {"plans", "wrong"};
enum Count : size_t { kPlans, kWrong };

/// The plans whose rows are compared.
struct Comparison {
  uint32_t ranks;
  RowBatches rows;
  std::vector<OrderedRow> plans = {};
  std::string text() const {
    return fmt::format("R={} {} of {}", ranks, info(rows.dtype).name, rows.hidden);
  }
};

std::vector<Comparison> all_comparisons(const LibraryTable& table) {
  std::vector<Comparison> all;
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    const std::vector<OrderedRow> plans = testing::ordered_rows(table, {ranks});
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3}) {
      for (const RowBatches& rows : {RowBatches{.dtype = dtype, .hidden = 360},
                                     RowBatches{.dtype = dtype, .hidden = 1 << 15, .step = 73}}) {
        all.push_back({ranks, rows});
        std::ranges::copy_if(plans, std::back_inserter(all.back().plans),
                             [&](const auto& plan) { return testing::is_compared(plan, dtype); });
      }
    }
  }
  return all;
}

/// What the first plan of each contract of `plan` gives a row alone.
std::string know_rows(const Comparison& comparison, const OrderedRow& plan, KnownRows& known) {
  RowBatches alone = comparison.rows;
  alone.most_rows = 1;
  const CollectiveKind kind = testing::kind_of(plan);
  for (const SumOrder order : plan.orders) {
    if (known.has(kind, order)) continue;
    const auto first = std::ranges::find_if(comparison.plans, [&](const OrderedRow& one) {
      return std::ranges::count(one.orders, order) != 0 && testing::kind_of(one) == kind;
    });
    if (const std::string fault = known.check(*first, alone); !fault.empty()) return fault;
  }
  return "";
}

void try_plan(const Comparison& comparison, const OrderedRow& plan, Counts counts) {
  KnownRows known;
  std::string fault;
  try {
    fault = know_rows(comparison, plan, known);
    if (fault.empty()) fault = known.check(plan, comparison.rows);
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  ++counts[kPlans];
  if (fault.empty()) return;
  ++counts[kWrong];
  fmt::print("{}: {}\n", comparison.text(), fault);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("rows inside batches of every size, in all plans under a contract");
  LongRun long_run;
  bool list = false;
  add_long_run_options(app, long_run);
  app.add_flag("--list", list, "only list what is compared, each with its first piece");
  CLI11_PARSE(app, argc, argv);
  if (!enter_repository()) return 2;
  Diagnostics diagnostics;
  const std::optional<Library> library = open_library("plans", diagnostics);
  if (!library) {
    fmt::print("{}", render_text(diagnostics, Sources{}));
    return 2;
  }
  const std::vector<Comparison> comparisons = all_comparisons(library->table);
  std::vector<std::pair<const Comparison*, const OrderedRow*>> pieces;
  for (const Comparison& one : comparisons) {
    if (list) fmt::print("{} {}, {} plans\n", pieces.size(), one.text(), one.plans.size());
    for (const OrderedRow& plan : one.plans) pieces.emplace_back(&one, &plan);
  }
  if (list) return 0;
  const auto work = [&](uint64_t piece, Counts counts) {
    try_plan(*pieces[piece].first, *pieces[piece].second, counts);
  };
  const LongRunResult result =
      run_pieces(long_run, pieces.size(), kNames, [&]() -> Work { return work; });
  fmt::print("{}", summary(result, pieces.size(), kNames));
  return exit_status(result, kWrong);
}
