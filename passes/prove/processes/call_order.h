// Which call each rank is in, and which plan a call of a rank is of, where several share what they
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/support/precondition.h"
#include "passes/prove/model/joint.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/run_options.h"

namespace mscclc::proof {

class CallOrder {
 public:
  /// All ranks are in call 0. Both must outlive it.
  CallOrder(const System& system, const RunOptions& options)
      : system_(system), options_(options), now_(system.ranks(), 0) {}

  /// The call that a rank is in; count(rank): it has done all.
  uint32_t now(uint32_t rank) const { return now_[rank]; }
  /// The rank has ended its call.
  void next(uint32_t rank) { ++now_[rank]; }
  /// How many calls a rank makes.
  uint32_t count(uint32_t rank) const {
    return system_.joint() ? static_cast<uint32_t>(options_.order[rank].size()) : options_.calls;
  }
  /// Have all ranks ended all their calls?
  bool all_ended() const;

  /// Position of a call's plan among System::parts().
  size_t part_index(uint32_t rank, uint32_t call) const {
    return system_.joint() ? options_.order[rank][call] : 0;
  }
  const Part& part(uint32_t rank, uint32_t call) const {
    return system_.parts()[part_index(rank, call)];
  }
  /// May the call's reduction be avg?
  bool divides(uint32_t rank, uint32_t call) const {
    return system_.joint() ? options_.part_divides[part_index(rank, call)] : options_.divides;
  }
  /// Calls of one plan on several ranks belong together: the n-th of each. They have one number.
  uint64_t instance(uint32_t rank, uint32_t call) const;
  /// Which call of a rank an instance is. REQUIRES: it is one of the rank's.
  uint32_t call_of(uint32_t rank, uint64_t instance) const;

  /// The blocks of a rank that act in its call: [first, end). REQUIRES: it is in one.
  uint32_t first_block(uint32_t rank) const {
    precondition(now(rank) < count(rank));
    return part(rank, now(rank)).first_block[rank];
  }
  uint32_t end_of_blocks(uint32_t rank) const;

 private:
  const System& system_;
  const RunOptions& options_;
  std::vector<uint32_t> now_;  ///< by rank
};

}  // namespace mscclc::proof
