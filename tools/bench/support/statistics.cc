#include "tools/bench/support/statistics.h"

#include <algorithm>
#include <cmath>

namespace mscclc::bench {

double quantile(std::vector<double> values, double q) {
  const auto n = static_cast<double>(values.size());
  const auto at = static_cast<size_t>(std::max(0.0, std::ceil(q * n) - 1));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

std::vector<double> slowest(const std::vector<std::vector<double>>& ranks) {
  std::vector<double> most = ranks.front();
  for (const std::vector<double>& rank : ranks) {
    for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], rank[i]);
  }
  return most;
}

std::vector<double> added_cost(const std::vector<double>& one, const std::vector<double>& two) {
  std::vector<double> costs(one.size());
  for (size_t i = 0; i < costs.size(); ++i) costs[i] = one[i] - (two[i] - one[i]);
  return costs;
}

}  // namespace mscclc::bench
