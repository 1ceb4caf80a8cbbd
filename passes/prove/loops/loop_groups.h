// Loops: pipelines as single thread blocks run them. Which loops advance together, round by round?
//
// Blocks tie their loops by what one gives and another takes: signals, releases, barriers. Where
// the j-th loop of the giver and the j-th of the taker have equally many rounds, and give and take
// equally often in a round, a count is the same after every round, so a further round finds what
// the one before it has found (lemmas R1 and R2 of docs/design/lemmas.md). That is looked at here,
// for every count. Then the loops that tie each other in both directions are a *group*, whose loops
// go in step, and a group comes after those that give to it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/support/precondition.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// The loops of a system. Immutable once built, so that threads may share it.
class LoopGroups {
 public:
  explicit LoopGroups(const System& system);

  /// Counts whose givers' and takers' rounds do not pair up.
  const std::vector<Finding>& findings() const { return findings_; }

  struct TiedLoops {
    uint32_t loops = 0;                          ///< that are in it
    std::vector<uint32_t> upstream, downstream;  ///< groups that give to it, that it gives to
  };
  const std::vector<TiedLoops>& groups() const { return groups_; }
  uint32_t loops() const { return static_cast<uint32_t>(group_of_.size()); }
  /// Number of the loop `loop` (of the program) of a block. REQUIRES: the block has ops in it.
  uint32_t loop(uint32_t process, uint32_t loop) const {
    precondition([&] { return numbers_.contains(key(process, loop)); });
    return numbers_.at(key(process, loop));
  }
  uint32_t group(uint32_t loop) const { return group_of_[loop]; }

 private:
  static uint64_t key(uint32_t process, uint32_t loop) { return uint64_t{process} << 32 | loop; }
  void make_groups(const std::vector<std::vector<uint32_t>>& takers);

  std::vector<Finding> findings_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<uint32_t> group_of_;
  std::vector<TiedLoops> groups_;
};

}  // namespace mscclc::proof
