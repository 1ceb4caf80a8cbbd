// What MSCCL++'s keys cannot say about the ops of a rank, gathered while they are written: lists
// of what is not as a reader would take it to be. An op is known by its position among the rank's
// ops, pipeline bodies included, pipelines themselves not.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/ops/summations.h"
#include "plans/format/json/json_writer.h"

namespace mscclc {

struct RankNotes {
  using Row = std::vector<uint32_t>;

  std::vector<uint32_t> complete;  ///< ops whose result is a complete sum
  /// By Summation: ops that add up in that way, other than one source after the other.
  std::array<std::vector<uint32_t>, 1 + summations().size()> by_summation;
  std::vector<uint32_t> reduction;  ///< written `sum`, but not what such ops of this plan mean
  std::vector<uint32_t> plain;      ///< packet sums whose plain source is not where others have it
  /// {block, positions …}: channels that data to their peer goes through in this block, though
  /// they are not the first to it in the block's table.
  std::vector<Row> data_channels;
  /// {op, channels …}: of each remote operand, destinations first, where the block's rule fails.
  std::vector<Row> op_channels;
  std::vector<Row> barriers;  ///< {op, blocks …}: where the order is not ascending
  /// {op, values …}: what an op applies (Program::integers).
  std::vector<std::vector<int64_t>> applied;

  void clear();
  /// Writes the members that are not empty. `foreign` as in Program.
  void write(JsonWriter& json, bool foreign) const;
};

}  // namespace mscclc
