#include "tools/bench/report/cliffs.h"

#include <fmt/format.h>

#include "tools/io/result_table.h"

namespace mscclc::bench {
namespace {

constexpr double kAllowance = 1.1;

template <class Visit>
void each_step(std::span<const Result> results, const Visit& visit) {
  for (const auto& [key, sizes] : tables_of(results)) {
    for (const bool in_place : {false, true}) {
      const Series series = fastest_plans(sizes, in_place);
      for (size_t i = 1; i < series.size(); ++i) {
        const auto& [from, from_time] = series[i - 1];
        const auto& [to, to_time] = series[i];
        const double growth = static_cast<double>(to) / static_cast<double>(from);
        visit(Cliff{.table = table_name(key),
                    .in_place = in_place,
                    .from = from,
                    .to = to,
                    .from_time = from_time,
                    .to_time = to_time,
                    .allowed = from_time * growth * kAllowance});
      }
    }
  }
}

}  // namespace

std::vector<Cliff> find_cliffs(std::span<const Result> results) {
  std::vector<Cliff> cliffs;
  each_step(results, [&](const Cliff& step) {
    if (step.to_time > step.allowed) cliffs.push_back(step);
  });
  return cliffs;
}

size_t count_steps(std::span<const Result> results) {
  size_t steps = 0;
  each_step(results, [&](const Cliff&) { ++steps; });
  return steps;
}

std::string cliff_text(const Cliff& c) {
  return fmt::format("{}, {}: {} us at {} bytes, {} us at {} bytes ({} would be no cliff)\n",
                     c.table, c.in_place ? "in place" : "out of place", time_text(c.from_time),
                     c.from, time_text(c.to_time), c.to, time_text(c.allowed));
}

}  // namespace mscclc::bench
