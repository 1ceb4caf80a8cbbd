#include "tools/bench/results/comparison.h"

#include <fmt/format.h>

namespace mscclc::bench {

TableKey table_of(const Result& r) {
  return {r.collective, r.dtype, r.op, r.root, r.mode, r.offset, r.ranks};
}

std::vector<Result> recorded_for(const Result& blank, uint64_t bytes,
                                 std::span<const Result> recorded) {
  std::vector<Result> found;
  for (const Result& r : recorded) {
    if (table_of(r) != table_of(blank) || r.bytes != bytes) continue;
    Result& one = found.emplace_back(r);
    if (one.between == blank.between) continue;
    one.between = blank.between;
    for (std::optional<Times>* times : {&one.out_of_place, &one.in_place}) {
      if (*times) (*times)->between = (*times)->between_early = 0;
    }
  }
  return found;
}

std::string table_name(const TableKey& key) {
  const auto& [collective, dtype, op, root, mode, offset, ranks] = key;
  std::string name = fmt::format("{}_{}", collective, dtype);
  if (op != "none") name += "_" + op;
  if (root > 0) name += fmt::format("_root{}", root);
  if (offset > 0) name += fmt::format("_offset{}", offset);
  return fmt::format("{}_{}_{}gpus", name, mode, ranks);
}

SizeComparison compare(std::span<const Result* const> results, bool in_place) {
  SizeComparison size;
  const auto take_faster = [&](const Result*& best, const Result* r) {
    if (best == nullptr || *r->time(in_place) < *best->time(in_place)) best = r;
  };
  for (const Result* r : results) {
    const std::optional<double> time = r->time(in_place);
    if (!time) continue;
    if (r->role == Role::baseline && (!size.baseline || *time < *size.baseline)) {
      size.baseline = time;
      size.baseline_name = r->who;
    }
    if (r->role == Role::floor) size.floor = time;
    if (r->role == Role::plan) take_faster(size.plan, r);
    if (r->role == Role::handwritten) take_faster(size.by_hand, r);
  }
  return size;
}

std::optional<double> ratio(const Result& result, const SizeComparison& size, bool in_place) {
  const std::optional<double> time = result.time(in_place);
  if (!time || !size.baseline) return std::nullopt;
  return *size.baseline / *time;
}

std::map<TableKey, BySize> tables_of(std::span<const Result> results) {
  std::map<TableKey, BySize> tables;
  for (const Result& r : results) tables[table_of(r)][r.bytes].push_back(&r);
  return tables;
}

Series fastest_plans(const BySize& sizes, bool in_place) {
  Series series;
  for (const auto& [bytes, results] : sizes) {
    const Result* plan = compare(results, in_place).plan;
    if (plan != nullptr) series.emplace_back(bytes, *plan->time(in_place));
  }
  return series;
}

Series times_of(const BySize& sizes, const std::string& who, bool in_place) {
  Series series;
  for (const auto& [bytes, results] : sizes) {
    for (const Result* r : results) {
      if (r->who != who || !r->time(in_place)) continue;
      series.emplace_back(bytes, *r->time(in_place));
    }
  }
  return series;
}

}  // namespace mscclc::bench
