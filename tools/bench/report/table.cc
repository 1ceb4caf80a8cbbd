#include "tools/bench/report/table.h"

#include <fmt/format.h>

#include <vector>

#include "tools/bench/report/between_table.h"
#include "tools/io/result_table.h"

namespace mscclc::bench {
namespace {

constexpr const char* kNone = "-";

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : kNone;
}

// time, algbw, busbw, #wrong: as nccl-tests writes them, N/A where it did not look.
std::string placement(const Result& r, const std::optional<Times>& t) {
  if (!t) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", kNone, kNone, kNone, "N/A");
  const std::string wrong = t->checked ? std::to_string(t->wrong) : "N/A";
  if (t->time <= 0) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", kNone, kNone, kNone, wrong);
  const double bandwidth = gigabytes_per_second(r.bytes, t->time);
  return fmt::format("  {:>7}  {:>6.2f}  {:>6.2f}  {:>6}", time_text(t->time), bandwidth,
                     bandwidth * r.bus_factor, wrong);
}

std::string tail(const std::optional<Times>& t, const std::optional<double>& ratio) {
  if (!t || t->p50 <= 0) return fmt::format("  {:>7}  {:>7}  {:>6}", kNone, kNone, number(ratio));
  return fmt::format("  {:>7}  {:>7}  {:>6}", time_text(t->p50), time_text(t->p99), number(ratio));
}

}  // namespace

std::string bench_header() {
  const std::string side =
      fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
  const std::string units =
      fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  const std::string more = fmt::format("  {:>7}  {:>7}  {:>6}", "p50", "p99", "ratio");
  return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>31}  {:>31}  {:>24}  {:>24}\n", "",
                     "", "", "", "", "out-of-place", "in-place", "out-of-place", "in-place") +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop",
                     "root") +
         side + side + more + more +
         fmt::format("  {:>7}  who (what orders two calls)\n", "floor") +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "") +
         units + units + "\n";
}

std::string bench_row(const Result& r, const SizeComparison& out_of_place,
                      const SizeComparison& in_place) {
  std::string row =
      fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", r.bytes, r.count, r.dtype, r.op, r.root);
  row += placement(r, r.out_of_place) + placement(r, r.in_place);
  row += tail(r.out_of_place, ratio(r, out_of_place, false));
  row += tail(r.in_place, ratio(r, in_place, true));
  row +=
      fmt::format("  {:>7}  {}",
                  out_of_place.floor ? time_text(*out_of_place.floor) : std::string(kNone), r.who);
  return row + (r.ordered_by.empty() ? "\n" : " (" + r.ordered_by + ")\n");
}

std::string bench_rows(std::span<const Result* const> results, bool best) {
  const SizeComparison out = compare(results, false), in = compare(results, true);
  const Result* fastest = out.plan != nullptr ? out.plan : in.plan;
  std::string rows;
  for (const Result* r : results) {
    if (best && !r->is_wrong() && r->role == Role::plan && r != fastest) continue;
    rows += bench_row(*r, out, in);
  }
  return rows;
}

std::string bench_footer(const BySize& sizes) {
  struct Sum {
    double bandwidth = 0;
    size_t values = 0;
  };
  std::vector<std::pair<std::string, Sum>> sums;  // in the order of the rows
  uint64_t wrong = 0;
  for (const auto& [bytes, results] : sizes) {
    for (const Result* r : results) {
      auto at = sums.begin();
      while (at != sums.end() && at->first != r->who) ++at;
      if (at == sums.end()) at = sums.insert(at, {r->who, {}});
      for (const auto& t : {r->out_of_place, r->in_place}) {
        if (!t) continue;
        wrong += t->wrong;
        if (t->time <= 0) continue;
        at->second.bandwidth += gigabytes_per_second(r->bytes, t->time) * r->bus_factor;
        ++at->second.values;
      }
    }
  }
  std::string text =
      fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  for (const auto& [who, sum] : sums) {
    if (sum.values == 0) continue;
    text += fmt::format("# Avg bus bandwidth    : {:<8.6g}  {}\n",
                        sum.bandwidth / static_cast<double>(sum.values), who);
  }
  return text + overhead_text(sizes) + between_text(sizes) + "#\n";
}

std::string overhead_text(const BySize& sizes) {
  std::string text;
  for (const auto& [bytes, results] : sizes) {
    const SizeComparison size = compare(results, false);
    if (size.plan == nullptr || size.by_hand == nullptr) continue;
    const double plan = *size.plan->time(), by_hand = *size.by_hand->time();
    text += fmt::format("# {:>10}  {:>7}  {:>7}  {:>+7.2f} us  {:>+6.1f} %  {}, {}\n", bytes,
                        time_text(plan), time_text(by_hand), plan - by_hand,
                        100 * (plan / by_hand - 1), size.plan->who, size.by_hand->who);
  }
  if (text.empty()) return text;
  return fmt::format(
             "# Fastest plan and fastest kernel by hand, out of place:\n# {:>10}  {:>7}  {:>7}\n",
             "size", "plan", "kernel") +
         text;
}

}  // namespace mscclc::bench
