// What comes of tuning: a table of the library with the fastest plans first, and what to show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plans/format/library_table.h"
#include "tools/tune/tuner.h"

namespace mscclc::tune {

/// The rows of a table in which what was found goes first: a row for each stretch of sizes with the
/// same plan, for these ranks on one node, up to the largest size that was measured; then the rows
/// of the library for the same collectives, for all other calls. Where captured calls were timed
/// and the library has something for others only, that stays. `results` by collective, sizes
/// rising. None is without effect: LibraryTable::parse() takes them.
std::vector<LibraryRow> tuned_rows(const std::vector<std::vector<SizeResult>>& results,
                                   const LibraryTable& library);

/// A size at which a call takes much more time than at the size before.
struct Jump {
  uint64_t from = 0, to = 0;  ///< bytes
  double from_ns = 0, to_ns = 0;
  std::string plan;  ///< of the larger size
};
/// Where time grows 1.5 times as much as the size does, or more, and by half at least.
std::vector<Jump> jumps(const std::vector<SizeResult>& results);

/// Pairs of plans for one call that differ by more than a tenth, as they were timed while looking
/// for the fastest: how many there are, and of how many the cost model names the faster.
struct ModelPairs {
  uint64_t all = 0, right = 0;
};
ModelPairs count_pairs(const std::vector<SizeResult>& results);

/// The table that a run ends with, of one collective: each size, what the library's pick takes,
/// what the fastest takes, what NCCL takes, and jumps.
std::string results_text(const std::vector<SizeResult>& results);

}  // namespace mscclc::tune
