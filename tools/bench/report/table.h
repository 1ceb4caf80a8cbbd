// The table of nccl-tests with both placements, and our columns after it:
//
//   #  size  count  type  redop  root |  time  algbw  busbw  #wrong |  time  algbw  busbw  #wrong
//      p50   p99    ratio              p50  p99  ratio               floor   who
//
// ratio: time of the fastest baseline / time. floor: µs of what only moves the bytes.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tools/bench/results/comparison.h"

namespace mscclc::bench {

std::string bench_header();
std::string bench_row(const Result& result, const SizeComparison& out_of_place,
                      const SizeComparison& in_place);
/// The rows of one size. `best`: of our plans the fastest alone.
std::string bench_rows(std::span<const Result* const> results, bool best);
/// Wrong values and the average bus bandwidth of each contender.
std::string bench_footer(const BySize& sizes);
/// At each size the fastest plan beside the fastest kernel by hand, out of place; "" without any.
std::string overhead_text(const BySize& sizes);

}  // namespace mscclc::bench
