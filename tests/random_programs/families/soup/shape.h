// How large a soup is and what it has (soups.cc), and what its parts share.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/cpu/dice.h"
#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs::soup {

/// Which ranks' inputs (all of one position) are added up there, each once; or it is not known.
struct Value {
  uint32_t position = 0;
  std::vector<uint32_t> ranks = {};
  bool operator==(const Value&) const = default;
  bool known() const { return !ranks.empty(); }
};

/// A chunk of a rank, as ops name it.
struct RankChunk {
  uint32_t rank = 0;
  std::string name;
  auto operator<=>(const RankChunk&) const = default;
};

/// Its processes are blocks, then callers.
struct Shape {
  uint32_t ranks = 2, blocks = 1, positions = 1, unit = 16, slack = 8;
  bool either = false, piped = false, with_packets = false, with_switch = false;
  bool full_close = true, gathers = false, wide = false;
  std::string format = {};  ///< of packets

  uint32_t processes() const { return ranks * blocks + ranks; }
  uint32_t process(uint32_t rank, uint32_t block) const { return rank * blocks + block; }
  uint32_t caller(uint32_t rank) const { return ranks * blocks + rank; }
  uint32_t rank_of(uint32_t p) const {
    return p < ranks * blocks ? p / blocks : p - ranks * blocks;
  }
  uint32_t block_of(uint32_t p) const { return p % blocks; }
  /// Chunks of an output: a row for each rank if the plan gathers.
  uint32_t outputs() const { return gathers ? positions * ranks : positions; }
  /// In place, an input lies where the output does.
  RankChunk origin(const RankChunk& place) const;
};

/// What parts of a soup share. Both must outlive it.
class Part {
 protected:
  Part(const Shape& shape, Dice& dice) : shape_(shape), dice_(dice) {}
  ~Part() = default;

  uint32_t any(uint32_t n) { return dice_.below(n); }
  bool slips() { return one_in(dice_, shape_.slack); }

  const Shape& shape_;
  Dice& dice_;
};

}  // namespace mscclc::random_programs::soup
