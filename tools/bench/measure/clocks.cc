#include "tools/bench/measure/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "executor/interpreter/step_kinds.h"
#include "executor/stamps.h"
#include "tools/bench/support/statistics.h"

namespace mscclc::bench {
namespace {

using namespace device;

constexpr uint32_t kEnd = 0xff;  ///< of a block, beside StampAt

/// Stamps of a block: what each is, and its cycles.
struct Row {
  std::vector<uint32_t> what;
  std::vector<double> cycles;
};

Row row_of(std::span<const uint64_t> words) {
  Row row;
  const uint64_t most = kClockWords - kStampHead;
  for (uint64_t i = 0; i < std::min(words[kStampsDue], most); ++i) {
    const BlockStamp stamp = stamp_of_word(words[kStampHead + i]);
    row.what.push_back(stamp.what);
    row.cycles.push_back(static_cast<double>(stamp.ticks));
  }
  if (words[kStampsEnded] == 0) return row;
  row.what.push_back(kEnd);
  row.cycles.push_back(static_cast<double>(words[kStampsTicks]));
  return row;
}

std::string name_of(uint32_t what) {
  switch (what) {
    case kStampProgram:
      return "program";
    case kStampAhead:
      return "ahead";
    case kStampCounts:
      return "counts";
    case kEnd:
      return "end";
    default: {
      const auto steps = step_table();
      return what < steps.size() ? std::string(steps[what].name) : "?";
    }
  }
}

/// "200", or "200 (100 to 300)": the median, the least and the most.
std::string spread_of(const std::vector<double>& cycles) {
  const auto [least, most] = std::ranges::minmax(cycles);
  const std::string median = fmt::format("{:.0f}", quantile(cycles, 0.5));
  return least == most ? median : fmt::format("{} ({:.0f} to {:.0f})", median, least, most);
}

}  // namespace

std::string clocks_text(std::span<const uint64_t> rows) {
  std::map<std::vector<uint32_t>, std::vector<std::vector<double>>> kinds;
  for (size_t at = 0; at + kClockWords <= rows.size(); at += kClockWords) {
    Row row = row_of(rows.subspan(at, kClockWords));
    if (!row.what.empty()) kinds[row.what].push_back(std::move(row.cycles));
  }
  std::string text;
  for (const auto& [what, blocks] : kinds) {
    text += fmt::format("# {:4} blocks:", blocks.size());
    for (size_t i = 0; i < what.size(); ++i) {
      std::vector<double> cycles;
      for (const auto& block : blocks) cycles.push_back(block[i]);
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", name_of(what[i]), spread_of(cycles));
    }
    text += "\n";
  }
  return text;
}

}  // namespace mscclc::bench
