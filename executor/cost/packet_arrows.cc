#include "executor/cost/packet_arrows.h"

#include <algorithm>

namespace mscclc::cost {
namespace {

/// Calls fn(write) with those that overlap `range`. REQUIRES: `writes` sorted by begin, of which
/// none is longer than `longest`.
template <class Writes, class Fn>
void for_each_overlap(const Writes& writes, uint64_t longest, const SlotRange& range, Fn fn) {
  const uint64_t first = range.begin > longest ? range.begin - longest : 0;
  auto at =
      std::ranges::lower_bound(writes, first, {}, [](const auto& w) { return w.range.begin; });
  for (; at != writes.end() && at->range.begin < range.end; ++at) {
    if (at->range.end > range.begin) fn(*at);
  }
}

}  // namespace

void PacketArrows::add_arrows(const std::vector<StepRecord>& records, std::vector<Arrow>& arrows) {
  std::map<RankBuffer, uint64_t> longest;
  for (auto& [buffer, writes] : writes_) {
    std::ranges::stable_sort(writes, {}, [](const Write& w) { return w.range.begin; });
    uint64_t& most = longest[buffer];
    for (const Write& w : writes) most = std::max(most, w.range.end - w.range.begin);
  }
  std::map<std::pair<uint32_t, uint32_t>, Arrow> pairs;
  for (const Read& read : reads_) {
    const auto written = writes_.find(read.from);
    if (written == writes_.end()) continue;
    const double end = records[read.record].end;
    std::map<uint64_t, const Write*> last;  // by where they begin
    for_each_overlap(written->second, longest[read.from], read.range, [&](const Write& w) {
      if (w.came > end) return;
      const Write*& known = last[w.range.begin];
      if (known == nullptr || known->came <= w.came) known = &w;
    });
    for (const auto& [begin, w] : last) {
      Arrow& arrow = pairs[{w->record, read.record}];
      if (arrow.from != kNoRecord && arrow.came >= w->came) continue;
      arrow = {w->record, read.record, true, w->sent, w->came};
    }
  }
  for (const auto& [pair, arrow] : pairs) arrows.push_back(arrow);
}

}  // namespace mscclc::cost
