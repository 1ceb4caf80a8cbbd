// Which bytes of a packet buffer have come, for blocks that poll them, and by how many messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace mscclc::cost {

/// Bytes [begin, end) of a buffer, as all calls together see it: each call has bytes of its own.
struct SlotRange {
  uint64_t begin = 0, end = 0;
};

class Arrivals {
 public:
  bool has(const SlotRange& range) const {
    auto at = come_.upper_bound(range.begin);
    return at != come_.begin() && std::prev(at)->second >= range.end;
  }
  /// What waits for `range` is in `woken` of the add() that completes it.
  void wait(const SlotRange& range, uint32_t waiter) {
    waiters_.insert({range.begin, {range.end, waiter}});
  }
  void add(SlotRange range, std::vector<uint32_t>& woken) {
    auto at = come_.upper_bound(range.begin);
    if (at != come_.begin() && std::prev(at)->second >= range.begin) --at;
    while (at != come_.end() && at->first <= range.end) {
      range.begin = std::min(range.begin, at->first);
      range.end = std::max(range.end, at->second);
      at = come_.erase(at);
    }
    come_.insert(at, {range.begin, range.end});
    for (auto w = waiters_.lower_bound(range.begin); w != waiters_.end() && w->first < range.end;) {
      if (w->second.first > range.end) {
        ++w;
      } else {
        woken.push_back(w->second.second);
        w = waiters_.erase(w);
      }
    }
  }

 private:
  std::map<uint64_t, uint64_t> come_;                               ///< begin to end, no two touch
  std::multimap<uint64_t, std::pair<uint64_t, uint32_t>> waiters_;  ///< begin to end and waiter
};

/// By how many messages, one after the other, the packets in a buffer have come. A slot has one
/// writer at a time, so no two ranges overlap, except that the next one may take the same place.
class SlotHops {
 public:
  void came(const SlotRange& range, uint32_t hops) { hops_[range.begin] = {range.end, hops}; }
  /// The most of those that lie in a range; 0: there are none.
  uint32_t most(const SlotRange& range) const {
    auto at = hops_.upper_bound(range.begin);
    if (at != hops_.begin() && std::prev(at)->second.end > range.begin) --at;
    uint32_t most = 0;
    for (; at != hops_.end() && at->first < range.end; ++at) most = std::max(most, at->second.hops);
    return most;
  }

 private:
  struct Came {
    uint64_t end;
    uint32_t hops;
  };
  std::map<uint64_t, Came> hops_;  ///< by where they begin
};

}  // namespace mscclc::cost
