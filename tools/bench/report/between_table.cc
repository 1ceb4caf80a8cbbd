#include "tools/bench/report/between_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/io/result_table.h"

namespace mscclc::bench {
namespace {

/// The cost of a right result; nothing if it was not measured.
std::optional<double> cost_of(const Result& r) {
  if (!r.time() || r.out_of_place->between <= 0) return std::nullopt;
  return r.out_of_place->between;
}

/// The fastest between other kernels of those with a role.
const Result* fastest(const std::vector<const Result*>& results, Role role) {
  const Result* best = nullptr;
  for (const Result* r : results) {
    if (r->role != role || !cost_of(*r)) continue;
    if (best == nullptr || *cost_of(*r) < *cost_of(*best)) best = r;
  }
  return best;
}

std::string bytes_text(uint64_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    if (bytes >> shift != 0 && bytes % (uint64_t{1} << shift) == 0) {
      return fmt::format("{} {}", bytes >> shift, unit);
    }
  }
  return fmt::format("{} B", bytes);
}

/// Back to back, and what else was measured.
std::string all_times(const Result* r) {
  if (r == nullptr || !r->time()) return "";
  std::string text = time_text(*r->time());
  for (const double cost : {r->out_of_place->between, r->out_of_place->between_early}) {
    if (cost > 0) text += " → " + time_text(cost);
  }
  return text;
}

/// The contenders that are no plans, in the order of the results.
std::vector<std::string> names_of_others(const BySize& sizes) {
  std::vector<std::string> names;
  for (const auto& [bytes, results] : sizes) {
    for (const Result* r : results) {
      if (r->role == Role::plan || std::ranges::find(names, r->who) != names.end()) continue;
      names.push_back(r->who);
    }
  }
  return names;
}

std::string row(uint64_t bytes, const std::vector<const Result*>& results,
                const std::vector<std::string>& names) {
  const Result* plan = fastest(results, Role::plan);
  std::string text = fmt::format("| {} | {} | {} |", bytes_text(bytes),
                                 plan == nullptr ? "" : "`" + plan->who + "`", all_times(plan));
  for (const std::string& name : names) {
    const auto at = std::ranges::find(results, name, &Result::who);
    text += fmt::format(" {} |", all_times(at == results.end() ? nullptr : *at));
  }
  const Result* baseline = fastest(results, Role::baseline);
  if (plan == nullptr || baseline == nullptr) return text + "  |\n";
  return text + fmt::format(" {:.2f} |\n", *cost_of(*baseline) / *cost_of(*plan));
}

}  // namespace

std::string between_text(const BySize& sizes) {
  const Result* any = nullptr;
  bool early = false;
  for (const auto& [bytes, results] : sizes) {
    for (const Result* r : results) {
      if (!cost_of(*r)) continue;
      any = r;
      early |= r->out_of_place->between_early > 0;
    }
  }
  if (any == nullptr) return "";
  const std::vector<std::string> names = names_of_others(sizes);
  std::string text = fmt::format(
      "# A call, us, out of place: back to back → between kernels of {}{}\n\n| bytes | program "
      "| ours |",
      any->between, early ? " → the same kernels, which let the next launch begin early" : "");
  for (const std::string& name : names) text += fmt::format(" {} |", name);
  text += " fastest baseline / ours |\n|--:|---|--:|";
  for (size_t i = 0; i < names.size(); ++i) text += "--:|";
  text += "--:|\n";
  for (const auto& [bytes, results] : sizes) text += row(bytes, results, names);
  return text + "\n";
}

}  // namespace mscclc::bench
