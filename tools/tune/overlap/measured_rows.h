// What comes of tuning GEMMs: rows of a table of measured choices, and what to show.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/tune/overlap/gemm_tuner.h"

namespace mscclc::tune {

/// Ranges of rows and of flops a byte, from and up to what was measured: where neighbours have the
/// same best way, what lies between them has, too. Of shapes that a table takes for one, with
/// the same rows and flops a byte, the way that is the fastest of all together, if it is faster
/// than `serial` for each of them by kGain. Eager runs are for the device's own products, which
/// were measured: a caller's function takes the host longer. Shapes without a time have no row.
/// overlap::read_measured() takes them.
std::vector<overlap::MeasuredChoice> measured_rows(std::span<const GemmResult> results);

/// A line: the shape, what is taken, and what all ways take, with their shares of the time that
/// `serial` takes; then a line for each way that was wrong, or not timed.
std::string result_text(const GemmResult& result);

}  // namespace mscclc::tune
