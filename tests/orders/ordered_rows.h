// The plans that the library picks for reductions under the contracts about the bits of sums
// (docs/bits.md), and whether one keeps them under many schedules of the simulator.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/contract/order.h"
#include "ir/program/program.h"
#include "plans/format/library_table.h"

namespace mscclc::testing {

/// Ranks in equal nodes.
struct OrderedWorld {
  uint32_t ranks, nodes = 1;
};

/// One node of 2 to 8 ranks, and the spreads over several that docs/bits.md is tried for.
const std::vector<OrderedWorld>& ordered_worlds();

/// What a row of the table picks for calls by name in one world.
struct OrderedRow {
  std::string program;
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<Dtype> types;      ///< those whose sums are rounded, of the types it is picked for
  std::vector<bool> in_place;    ///< the placements that it is picked for
  std::vector<SumOrder> orders;  ///< the contracts that it is picked under
  bool operator==(const OrderedRow&) const = default;
  /// "allreduce_push R=4 B=8: replicated, ranks"
  std::string text() const;
};

/// The rows for every reduction over any size and link, eager or captured. Each once.
std::vector<OrderedRow> ordered_rows(const LibraryTable& table, const OrderedWorld& world);

/// What has been tried of a row.
struct ScheduleCounts {
  uint64_t schedules = 0;
  /// By SumOrder: schedules that kept it.
  std::array<uint64_t, static_cast<size_t>(SumOrder::exact) + 1> kept = {};
};

/// Numbers of schedules: `first` and those after it.
struct ScheduleRange {
  uint64_t first = 0, count = 0;
};

/// Runs small messages of the row's types, sizes and placements in turn, each schedule another; of
/// four schedules three are adversarial. Compares the outputs to the bit with what each of the
/// row's contracts promises, and with those of the first schedule. "": all are kept; else what was
/// not, and under which schedule. REQUIRES: `program` is the row's.
std::string broken_by_schedules(const Program& program, const OrderedRow& row,
                                const ScheduleRange& schedules, ScheduleCounts& counts);

}  // namespace mscclc::testing
