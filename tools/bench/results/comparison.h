// Results compared: the fastest baseline, the fastest of our plans, the floor.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tools/bench/results/result.h"

namespace mscclc::bench {

/// Results of one table: those that differ in size and contender only.
using TableKey = std::tuple<std::string, std::string, std::string, int64_t, std::string, uint64_t,
                            uint32_t>;  // collective, dtype, op, root, mode, offset, ranks
TableKey table_of(const Result& result);
/// What was recorded of a table at one size: `blank` is a result of it without figures. Costs
/// between other kernels than the table's cannot be compared with it, and are left out.
std::vector<Result> recorded_for(const Result& blank, uint64_t bytes,
                                 std::span<const Result> recorded);
/// "allreduce_f32_sum_graph"; more where tables would have the same name.
std::string table_name(const TableKey& key);

/// The results of one table at one size.
struct SizeComparison {
  std::optional<double> baseline;   ///< µs of the fastest baseline
  std::optional<double> floor;      ///< µs
  const Result* plan = nullptr;     ///< the fastest of our plans
  const Result* by_hand = nullptr;  ///< the fastest kernel by hand
  std::string baseline_name;
};
SizeComparison compare(std::span<const Result* const> results, bool in_place);

/// Time of the fastest baseline / time: above 1 we are ahead.
std::optional<double> ratio(const Result& result, const SizeComparison& size, bool in_place);

/// Bytes and microseconds, growing in bytes.
using Series = std::vector<std::pair<uint64_t, double>>;

/// The table's results by size.
using BySize = std::map<uint64_t, std::vector<const Result*>>;
std::map<TableKey, BySize> tables_of(std::span<const Result> results);
/// The time of the fastest of our plans at each size.
Series fastest_plans(const BySize& sizes, bool in_place);
/// One contender's times.
Series times_of(const BySize& sizes, const std::string& who, bool in_place);

}  // namespace mscclc::bench
