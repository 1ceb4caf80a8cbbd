// What each thread block of a rank knows of the others' progress: vector clocks, kept as immutable
// rows in one arena. Progress is counted in ops of a block (1 after its first op). A row changes
// only where blocks synchronise, so each block also keeps the history of its rows: what did it know
// when it had done `count` ops?
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/framework/clock_rows.h"

namespace mscclc::order {

/// What a block passes on: a row of the arena, and its own progress.
struct Knowledge {
  uint32_t row = 0, block = kNone, count = 0;
};

class BlockClocks {
 public:
  void start(uint32_t blocks) {
    rows_.start(blocks, 1);  // row 0: nothing is known
    current_.assign(blocks, 0);
    last_.assign(blocks, kNone);
    log_.clear();
  }
  /// How many ops of `other` are known to be done at this row.
  uint32_t known(uint32_t row, uint32_t other) const { return rows_[row][other]; }
  uint32_t row(uint32_t block) const { return current_[block]; }
  /// The row of `block` when it had done `count` ops.
  uint32_t row_at(uint32_t block, uint32_t count) const {
    uint32_t entry = last_[block];
    while (entry != kNone && log_[entry].count > count) entry = log_[entry].older;
    return entry == kNone ? 0 : log_[entry].row;
  }
  /// Numbers in all rows together: half a GiB. Each op that synchronises makes rows as long as
  /// there are blocks; 132 blocks may have half a million such ops.
  static constexpr uint64_t kMaxNumbers = uint64_t{1} << 27;
  /// No more rows are made: blocks may know more than is said here.
  bool full() const { return rows_.numbers() >= kMaxNumbers; }
  /// A new row that knows what `row` and `news` know.
  uint32_t join(uint32_t row, const Knowledge& news) {
    if (full()) return row;
    const uint32_t joined = rows_.copy(row);
    rows_.raise(joined, news.row);
    if (news.block != kNone) {
      uint32_t& known = rows_[joined][news.block];
      known = std::max(known, news.count);
    }
    return joined;
  }
  /// From now on, having done `count` ops, `block` knows this row.
  void set(uint32_t block, uint32_t count, uint32_t row) {
    current_[block] = row;
    log_.push_back({count, row, last_[block]});
    last_[block] = static_cast<uint32_t>(log_.size() - 1);
  }

 private:
  struct LoggedRow {
    uint32_t count, row, older;
  };
  ClockRows rows_;
  std::vector<uint32_t> current_, last_;
  std::vector<LoggedRow> log_;
};

}  // namespace mscclc::order
