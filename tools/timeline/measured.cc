#include "tools/timeline/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "executor/stamps.h"
#include "tools/timeline/predicted.h"

namespace mscclc::timeline {
namespace {

using device::BlockStamp;

/// Is a stamp of this kind one of a step that was predicted as `kind`? The host has apart what GPUs
/// do to a row at once: the sum, its function, what sends the result on, and where threads meet
/// between.
bool stands_for(uint32_t what, device::StepKind kind) {
  using device::StepKind;
  if (what == static_cast<uint32_t>(kind)) return true;
  if (device::info(kind).family != device::StepFamily::rows || !device::info(kind).adds)
    return false;
  constexpr StepKind kApart[] = {StepKind::reduce, StepKind::reduce_packets, StepKind::sync,
                                 StepKind::apply,  StepKind::move_packets,   StepKind::copy};
  return std::ranges::find(kApart, static_cast<StepKind>(what)) != std::end(kApart);
}

/// A row in times since the call's begin.
struct Row {
  std::vector<BlockStamp> steps;  ///< stamps of steps
  std::vector<double> begins;     ///< of each
  double begin = 0, end = 0;
};

class Measured {
 public:
  Measured(const cost::Timeline& plan, const std::vector<RankStamps>& ranks)
      : plan_(plan), ranks_(ranks), slice_of_(plan.records.size(), kNone) {}

  Result<void> read() {
    for (uint32_t r = 0; r < plan_.records.size(); ++r) {
      const cost::StepRecord& record = plan_.records[r];
      records_[{record.rank, record.block}].push_back(r);
    }
    return find_begin();
  }

  Trace trace(const std::string& how) {
    trace_.how = how;
    for (const auto& [block, records] : records_) add_block(row_of(block), records);
    std::ranges::sort(trace_.slices, {}, &Slice::record);
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) slice_of_[trace_.slices[i].record] = i;
    for (const cost::Arrow& a : plan_.arrows) {
      add_arrow(slice_of_[a.from], slice_of_[a.to], a.packets);
    }
    for (const std::vector<uint32_t>& met : plan_.meetings) add_meeting(met);
    find_path();
    return std::move(trace_);
  }

 private:
  using Block = std::pair<uint32_t, uint32_t>;  ///< rank and block

  const uint64_t* words_of(const Block& block) const {
    return ranks_[block.first].rows.data() + size_t{block.second} * ranks_[block.first].words;
  }

  /// The call begins with its first block.
  Result<void> find_begin() {
    bool first = true;
    for (const auto& [block, records] : records_) {
      const auto [rank, number] = block;
      const bool there = rank < ranks_.size() && ranks_[rank].words > device::kStampHead &&
                         ranks_[rank].rows.size() >= (size_t{number} + 1) * ranks_[rank].words;
      if (!there || words_of(block)[device::kStampsEnded] == 0) {
        return Error{
            fmt::format("there are no stamps of thread block {} of rank {}", number, rank)};
      }
      const uint64_t* words = words_of(block);
      if (words[device::kStampsDue] > ranks_[rank].words - device::kStampHead) {
        return Error{
            fmt::format("thread block {} of rank {} has {} stamps, of which {} fit", number, rank,
                        words[device::kStampsDue], ranks_[rank].words - device::kStampHead),
            "a smaller message has fewer steps"};
      }
      const int64_t begin = on_clock_0(rank, words[device::kStampsBegan]);
      begin_ = first ? begin : std::min(begin_, begin);
      first = false;
    }
    return {};
  }
  int64_t on_clock_0(uint32_t rank, uint64_t ns) const {
    return static_cast<int64_t>(ns) - ranks_[rank].ahead_ns;
  }

  Row row_of(const Block& block) const {
    const uint64_t* words = words_of(block);
    Row row;
    row.begin = static_cast<double>(on_clock_0(block.first, words[device::kStampsBegan]) - begin_);
    // Nanoseconds since 1970: doubles are 256 of these apart.
    const auto took = static_cast<double>(
        static_cast<int64_t>(words[device::kStampsEnded] - words[device::kStampsBegan]));
    row.end = row.begin + std::max(took, 0.0);
    const auto ticks = static_cast<double>(std::max<uint64_t>(words[device::kStampsTicks], 1));
    for (uint64_t i = 0; i < words[device::kStampsDue]; ++i) {
      const BlockStamp stamp = device::stamp_of_word(words[device::kStampHead + i]);
      if (stamp.what >= device::step_table().size()) continue;
      const double at = row.begin + static_cast<double>(stamp.ticks) / ticks * took;
      row.steps.push_back(stamp);
      row.begins.push_back(std::min(at, row.end));
    }
    return row;
  }

  /// Both lists in runs of one op: an op may have become several steps of a block's program, and
  /// one without data has none.
  void add_block(const Row& row, const std::vector<uint32_t>& records) {
    size_t stamp = 0;
    for (size_t first = 0; first < records.size();) {
      const cost::StepRecord& op = plan_.records[records[first]];
      const auto like_record = [&](uint32_t record) {
        return plan_.records[record].source == op.source && plan_.records[record].kind == op.kind;
      };
      const auto like_stamp = [&](const BlockStamp& s) {
        return s.source == op.source && stands_for(s.what, op.kind);
      };
      size_t last = first, end = stamp;
      while (last < records.size() && like_record(records[last])) ++last;
      while (end < row.steps.size() && like_stamp(row.steps[end])) ++end;
      const size_t n = last - first, stamps = end - stamp;
      for (size_t k = 0; k < n && stamps > 0; ++k) {
        const size_t from = stamp + k * stamps / n, to = stamp + (k + 1) * stamps / n;
        if (from == to) continue;
        add_slice(records[first + k], row.begins[from],
                  to < row.begins.size() ? row.begins[to] : row.end);
      }
      first = last;
      stamp = end;
    }
  }

  void add_slice(uint32_t record, double begin, double end) {
    Slice s = step_of(plan_.records[record], record);
    s.begin = s.work = begin;
    s.idle = s.back = s.end = std::max(begin, end);
    trace_.slices.push_back(s);
    trace_.end = std::max(trace_.end, s.end);
  }

  /// A signal has left when its step is over. Of packets the first leave when their step begins,
  /// which is all that stamps say.
  void add_arrow(uint32_t from, uint32_t to, bool packets) {
    if (from == kNone || to == kNone) return;
    const Slice& sender = trace_.slices[from];
    Slice& receiver = trace_.slices[to];
    const double left = packets ? sender.begin : sender.end;
    if (left <= receiver.begin) return;
    const double came = std::min(left, receiver.end);
    receiver.work = std::max(receiver.work, came);
    trace_.arrows.push_back({from, to, packets, came, came});
  }

  void add_meeting(const std::vector<uint32_t>& met) {
    uint32_t last = kNone;
    for (const uint32_t record : met) {
      const uint32_t slice = slice_of_[record];
      if (slice == kNone) continue;
      if (last == kNone || trace_.slices[slice].begin > trace_.slices[last].begin) last = slice;
    }
    for (const uint32_t record : met) {
      const uint32_t slice = slice_of_[record];
      if (slice == kNone || slice == last) continue;
      Slice& s = trace_.slices[slice];
      const double at = std::min(trace_.slices[last].begin, s.end);
      if (at <= s.begin) continue;
      s.work = std::max(s.work, at);
      trace_.arrows.push_back({last, slice, false, at, at});
    }
  }

  /// From the step that ended last, back to whom each waited for.
  void find_path() {
    if (trace_.slices.empty()) return;
    std::map<uint32_t, const Arrow*> awaited;
    for (const Arrow& a : trace_.arrows) {
      const Arrow*& known = awaited[a.to];
      if (known == nullptr || a.came > known->came) known = &a;
    }
    std::map<Block, std::vector<uint32_t>> blocks;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      blocks[{trace_.slices[i].rank, trace_.slices[i].block}].push_back(i);
    }
    std::vector<uint32_t> before(trace_.slices.size(), kNone);
    for (auto& [block, slices] : blocks) {
      std::ranges::stable_sort(slices, {}, [&](uint32_t i) { return trace_.slices[i].begin; });
      for (size_t k = 1; k < slices.size(); ++k) before[slices[k]] = slices[k - 1];
    }
    uint32_t at = static_cast<uint32_t>(std::ranges::max_element(trace_.slices, {}, &Slice::end) -
                                        trace_.slices.begin());
    double until = trace_.slices[at].end;
    const auto add = [&](uint32_t slice, std::string_view cause, double begin) {
      if (begin < until) trace_.path.push_back({slice, cause, begin, until});
      until = std::min(until, begin);
    };
    // Clocks that are apart could lead in a circle.
    for (size_t n = 0; n <= 2 * trace_.slices.size() && at != kNone; ++n) {
      const auto arrow = awaited.find(at);
      if (arrow != awaited.end() && arrow->second->came < until) {
        add(at, "step", arrow->second->came);
        at = arrow->second->from;
      } else {
        add(at, "step", trace_.slices[at].begin);
        at = before[at];
      }
    }
    add(kNone, "launch", 0);
    std::ranges::reverse(trace_.path);
  }

  const cost::Timeline& plan_;
  const std::vector<RankStamps>& ranks_;
  std::map<Block, std::vector<uint32_t>> records_;
  std::vector<uint32_t> slice_of_;  ///< by record
  int64_t begin_ = 0;
  Trace trace_;
};

}  // namespace

uint32_t stamp_words(const cost::Timeline& plan) {
  constexpr size_t kMaxWords = 1'500'000;  // of a rank: 12 MB
  std::map<std::pair<uint32_t, uint32_t>, size_t> steps;
  size_t most = 0, blocks = 1;
  for (const cost::StepRecord& r : plan.records) {
    most = std::max(most, ++steps[{r.rank, r.block}]);
    blocks = std::max<size_t>(blocks, r.block + 1);
  }
  // An op may become several steps of a block's program: five of a sum with a row function.
  return static_cast<uint32_t>(std::min(device::kStampHead + 64 + 5 * most, kMaxWords / blocks));
}

Result<Trace> measured_trace(const cost::Timeline& plan, const std::vector<RankStamps>& ranks,
                             const std::string& how) {
  Measured measured(plan, ranks);
  if (const auto read = measured.read(); !read) return read.error();
  return measured.trace(how);
}

}  // namespace mscclc::timeline
