// The table of nccl-tests, one placement per run: what `mscclc run` prints and what scripts that
// know nccl-tests read.
//
//   #       size         count      type   redop    root     time   algbw   busbw  #wrong
//   #        (B)    (elements)                               (us)  (GB/s)  (GB/s)
//           1024           256       f32     sum      -1    123.4    0.01    0.01       0
#pragma once

#include <cstdint>
#include <string>

#include "ir/contract/contract.h"

namespace mscclc {

/// One line of the table.
struct ResultRow {
  uint64_t bytes = 0;  ///< the larger of input and output
  uint64_t count = 0;  ///< elements of one rank's part, as nccl-tests counts
  std::string_view dtype, op;
  int64_t root = -1;  ///< -1: the collective has none
  double microseconds = 0;
  uint64_t wrong = 0;
};

/// What algorithm bandwidth is multiplied with to give bus bandwidth, as nccl-tests defines it:
/// 2(n-1)/n for allreduce, (n-1)/n where each rank keeps its own part, else 1.
double bus_factor(CollectiveKind kind, uint32_t ranks);

/// Bytes per microsecond / 1000, in GB/s (10^9); 0 for no time.
double algorithm_bandwidth(const ResultRow& row);

/// Microseconds in seven characters at most: fewer decimals as they grow.
std::string time_text(double microseconds);

/// The two heading lines.
std::string table_header(bool in_place);
std::string table_row(const ResultRow& row, double bus_factor);
/// The closing lines: wrong values in total, and the average bus bandwidth over `rows` rows.
std::string table_footer(uint64_t wrong, double bus_bandwidth_sum, size_t rows);

}  // namespace mscclc
