// Cliffs: sizes at which time grows faster than the message. Between neighbouring sizes it may grow
// as much as the message does, plus a tenth.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/bench/results/comparison.h"

namespace mscclc::bench {

struct Cliff {
  std::string table;  ///< table_name()
  bool in_place = false;
  uint64_t from = 0, to = 0;          ///< bytes
  double from_time = 0, to_time = 0;  ///< µs
  double allowed = 0;                 ///< µs at `to`
};

/// Cliffs of the fastest of our plans at each size, in every table.
std::vector<Cliff> find_cliffs(std::span<const Result> results);
/// How many pairs of neighbouring sizes there are to look at.
size_t count_steps(std::span<const Result> results);
std::string cliff_text(const Cliff& cliff);

}  // namespace mscclc::bench
