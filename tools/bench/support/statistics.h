// Medians and percentiles of measured times.
#pragma once

#include <vector>

namespace mscclc::bench {

/// The value below which a share `q` of the values lies: the smallest that at least q of them do
/// not exceed. REQUIRES: values, 0 <= q <= 1.
double quantile(std::vector<double> values, double q);

/// Value by value the largest of all ranks. REQUIRES: all are equally long.
std::vector<double> slowest(const std::vector<std::vector<double>>& ranks);

/// What a call costs beside other work: of calls with that work once (`one`) and twice (`two`)
/// each, value by value the first less what the work takes. REQUIRES: equally long.
std::vector<double> added_cost(const std::vector<double>& one, const std::vector<double>& two);

}  // namespace mscclc::bench
