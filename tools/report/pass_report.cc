#include "tools/report/pass_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mscclc {
namespace {

std::string time_row(double cpu, double wall, const PassRecord& sum, std::string_view name) {
  const auto share = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0; };
  return fmt::format("{:>9.4f} ({:>5.1f}%) {:>10.4f} ({:>5.1f}%)  {}\n", cpu,
                     share(cpu, sum.cpu_seconds), wall, share(wall, sum.wall_seconds), name);
}

}  // namespace

std::string time_table(std::span<const PassRecord> records) {
  std::vector<PassRecord> sorted(records.begin(), records.end());
  std::ranges::stable_sort(sorted, std::greater(), &PassRecord::wall_seconds);
  PassRecord sum;
  for (const PassRecord& r : records) {
    sum.cpu_seconds += r.cpu_seconds;
    sum.wall_seconds += r.wall_seconds;
  }
  std::string text = fmt::format("Pass execution timing report, in seconds\n\n{:>18} {:>19}  {}\n",
                                 "CPU time", "Wall time", "Pass");
  for (const PassRecord& r : sorted) text += time_row(r.cpu_seconds, r.wall_seconds, sum, r.pass);
  return text + time_row(sum.cpu_seconds, sum.wall_seconds, sum, "total");
}

std::string stats_table(std::span<const PassRecord> records) {
  std::string text = fmt::format("{:<72}{:>12}{:>12}\n", "pass", "ops before", "ops after");
  for (const PassRecord& r : records) {
    text += fmt::format("{:<72}{:>12}{:>12}\n", r.pass, r.ops_before, r.ops_after);
    for (const auto& [what, count] : r.counts) text += fmt::format("  {:<70}{:>12}\n", what, count);
  }
  return text;
}

}  // namespace mscclc
