#include "executor/cost/critical_path.h"

#include <algorithm>

namespace mscclc::cost {
namespace {

/// Walks from the end of a call to its launch.
class Walk {
 public:
  explicit Walk(const Timeline& timeline) : records_(timeline.records) {}

  std::vector<PathPart> from(uint32_t record) {
    record_ = record;
    until_ = records_[record].end;
    // Every step goes to an earlier time, or at that time to an earlier record.
    while (record_ != kNoRecord) step();
    add(Cause::launch, 0, kNoRecord);
    std::ranges::reverse(path_);
    return std::move(path_);
  }

 private:
  /// What lies between `begin` and where the walk is.
  void add(Cause cause, double begin, uint32_t record) {
    if (begin >= until_) return;
    if (!path_.empty() && path_.back().cause == cause && path_.back().record == record) {
      path_.back().begin = begin;
    } else {
      path_.push_back({cause, begin, until_, record});
    }
    until_ = begin;
  }
  /// Goes on where a message came from.
  void follow(uint32_t sender, double sent, const StepRecord& r) {
    if (sender == kNoRecord || sent > until_) {
      add(Cause::latency, r.begin, record_);
      record_ = r.before;
      return;
    }
    add(Cause::latency, sent, record_);
    record_ = sender;
  }
  void step() {
    const StepRecord& r = records_[record_];
    if (r.arrived > r.done && until_ > r.done && r.last != kNoRecord) {
      add(Cause::block, r.arrived, record_);
      return follow(r.last, r.last_sent, r);
    }
    add(r.cause, r.work, record_);
    if (r.work > r.begin) return follow(r.waited, r.waited_sent, r);
    record_ = r.before;
  }

  const std::vector<StepRecord>& records_;
  std::vector<PathPart> path_;
  uint32_t record_ = kNoRecord;
  double until_ = 0;
};

}  // namespace

std::vector<PathPart> critical_path(const Timeline& timeline) {
  if (timeline.final_record == kNoRecord) return {{Cause::launch, 0, timeline.alone_ns, kNoRecord}};
  return Walk(timeline).from(timeline.final_record);
}

std::array<double, kCauses> shares(const std::vector<PathPart>& path) {
  std::array<double, kCauses> sums{};
  for (const PathPart& part : path) sums[static_cast<size_t>(part.cause)] += part.end - part.begin;
  return sums;
}

}  // namespace mscclc::cost
