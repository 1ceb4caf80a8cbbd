// A set of chunks of a buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mscclc::mscclpp {

/// Runs in order that do not touch: a run may have billions of chunks.
class Runs {
 public:
  /// Whether some of the chunks from `first` up to `last` are among these.
  bool has_any(uint64_t first, uint64_t last) const {
    const auto found = std::upper_bound(
        runs_.begin(), runs_.end(), first,
        [](uint64_t value, const Run& run) { return value < run.last; });  // ends after `first`
    return found != runs_.end() && found->first < last;
  }

  /// Adds the chunks from `first` up to `last`.
  void add(uint64_t first, uint64_t last) {
    if (runs_.empty() || first > runs_.back().last) {  // programs mostly go upwards
      runs_.push_back({first, last});
      return;
    }
    // Runs from `begin` up to `end` touch the new one.
    const auto begin =
        std::lower_bound(runs_.begin(), runs_.end(), first,
                         [](const Run& run, uint64_t value) { return run.last < value; });
    const auto end = std::upper_bound(
        begin, runs_.end(), last, [](uint64_t value, const Run& run) { return value < run.first; });
    if (begin == end) {
      runs_.insert(begin, {first, last});
      return;
    }
    begin->first = std::min(begin->first, first);
    begin->last = std::max((end - 1)->last, last);
    runs_.erase(begin + 1, end);
  }

  void clear() { runs_.clear(); }

 private:
  struct Run {
    uint64_t first, last;
  };
  std::vector<Run> runs_;
};

}  // namespace mscclc::mscclpp
