// For tests of limits in which something else must happen first: a machine under load may stand
// still for longer than any limit that a test can wait for each time it runs.
#pragma once

#include <chrono>
#include <initializer_list>

namespace mscclc::testing {

/// Far beyond what is needed, also under load: what takes so long hangs.
constexpr std::chrono::seconds kFarBeyond{300};

/// Whether a test is right with its times, or with longer ones if the machine was too slow for
/// those. `is_right`: takes the factor of all its times.
template <class IsRight>
bool right_in_longer_times(IsRight is_right, std::initializer_list<int> factors = {1, 10, 100}) {
  for (const int factor : factors) {
    if (is_right(factor)) return true;
  }
  return false;
}

/// Whether a test is right in one of three tries: a thread that gets no processor may let others go
/// first, which longer times do not change.
template <class IsRight>
bool right_in_a_try(IsRight is_right) {
  return right_in_longer_times([&](int) { return is_right(); }, {1, 1, 1});
}

}  // namespace mscclc::testing
