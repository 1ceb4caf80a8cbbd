// What calls cost back to back and between other kernels (--between, --between-early), as a table
// of Markdown.
#pragma once

#include <string>

#include "tools/bench/results/comparison.h"

namespace mscclc::bench {

/// A row for each size: the plan that is fastest between other kernels, and all others, each "back
/// to back → between", and "→ between_early" where that was measured; then the time of the fastest
/// baseline by the plan's, both between other kernels. Out of place; "" if no such costs were
/// measured.
std::string between_text(const BySize& sizes);

}  // namespace mscclc::bench
