// Barriers: one arrival per block, and the check that all blocks of a barrier reach it equally
// often.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "compiler/builder/ops/locations.h"
#include "compiler/builder/ops/places.h"

namespace mscclc {

class Barriers {
 public:
  Barriers(BuildReports& reports, Draft& draft, Budget& budget, Places& places,
           Locations& locations)
      : reports_(reports), draft_(draft), budget_(budget), places_(places), locations_(locations) {}

  /// The arrival of the block at hand, or of each of them outside blocks; false after a mistake,
  /// which is reported.
  bool add(const List& blocks, Mark mark);
  /// Of a rank, once the program is complete.
  void check(uint32_t rank);
  /// Takes what another builder knows of its barriers.
  void take(Barriers& part) { marks_.merge(part.marks_); }

 private:
  bool arrive(uint32_t b, std::span<const Operand> members);
  bool find_members(const List& blocks, Mark mark, std::vector<Operand>& members);

  BuildReports& reports_;
  Draft& draft_;
  Budget& budget_;
  Places& places_;
  Locations& locations_;
  std::map<std::vector<int64_t>, Mark> marks_;  ///< by blocks: where first written
};

}  // namespace mscclc
