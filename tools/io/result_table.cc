#include "tools/io/result_table.h"

#include <fmt/format.h>

namespace mscclc {

std::string time_text(double us) {
  if (us >= 10000) return fmt::format("{:.0f}", us);
  return us >= 100 ? fmt::format("{:.1f}", us) : fmt::format("{:.2f}", us);
}

double bus_factor(CollectiveKind kind, uint32_t ranks) {
  const double n = ranks;
  const double share = (n - 1) / n;
  switch (info(kind).bus) {
    case BusTraffic::once:
      return 1;
    case BusTraffic::share:
      return share;
    case BusTraffic::twice:
      return 2 * share;
  }
  return 1;
}

double algorithm_bandwidth(const ResultRow& row) {
  return row.microseconds > 0 ? static_cast<double>(row.bytes) / row.microseconds / 1e3 : 0;
}

std::string table_header(bool in_place) {
  return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>21}\n", "", "", "", "", "",
                     in_place ? "in-place" : "out-of-place") +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n", "size",
                     "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong") +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}\n", "(B)",
                     "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)");
}

std::string table_row(const ResultRow& row, double bus_factor) {
  const double bandwidth = algorithm_bandwidth(row);
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6.2f}  {:>6.2f}  {:>6}\n",
                     row.bytes, row.count, row.dtype, row.op, row.root, time_text(row.microseconds),
                     bandwidth, bandwidth * bus_factor, row.wrong);
}

std::string table_footer(uint64_t wrong, double bus_bandwidth_sum, size_t rows) {
  if (rows == 0) return "# nothing ran\n";
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.6g}\n#\n", wrong,
                     wrong == 0 ? "OK" : "FAILED", bus_bandwidth_sum / static_cast<double>(rows));
}

}  // namespace mscclc
