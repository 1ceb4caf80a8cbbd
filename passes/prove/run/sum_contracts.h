// Which contracts about the bits of sums the results keep (docs/bits.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/memory/history.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/sum_shapes.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/values.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/run_options.h"

namespace mscclc::proof {

class SumContracts {
 public:
  /// All of them must outlive it.
  SumContracts(const System& system, const Symbols& symbols, const CallOrder& calls,
               const History& history, const ChunkContents& contents, FindingList& findings);

  /// Ranks whose contributions are added up, in ascending order. There is one for each list, which
  /// stays where it is: many results are sums of the same.
  struct Summands {
    const std::vector<uint32_t> ranks;
    const bool once;  ///< no rank is there twice
    const SumShapes shapes;
  };
  const Summands& summands(const std::vector<uint32_t>& ranks);
  /// A result `name` that holds the sum of these contributions, as is promised. Reports another
  /// order than is promised, too.
  /// `after`: what becomes of the shape of a sum on its way to the result.
  using After = std::function<uint64_t(uint64_t)>;
  /// `writer`: of a chunk of an external, whose number is that of `name`'s buffer.
  void check(const ChunkName& name, const Summands& summands, const Symbol& found,
             const After& after, const Event* writer = nullptr);
  /// A result that is no sum may have other bits than what was moved: it keeps to no order.
  void note_other_bits() { kept_ = {}; }
  /// Those that all results so far keep.
  const SumOrders& kept() const { return kept_; }

 private:
  /// Where a sum was first seen, and how it was made there.
  struct FirstSum {
    uint64_t order;
    ChunkName chunk;
  };

  bool added_alike(const ChunkName& name, const Symbol& found);
  uint64_t least_image(const Symbol& sum) const;
  SumOrders orders_of(const Summands& summands, const Symbol& found, const After& after);
  std::vector<uint32_t> turned(const std::vector<uint32_t>& ranks, uint32_t turns) const;

  const System& system_;
  const Symbols& symbols_;
  const CallOrder& calls_;
  const History& history_;
  const ChunkContents& contents_;
  FindingList& findings_;
  SumOrders kept_{.replicated = true, .ranks = true, .tree = true, .exact = true};
  std::unordered_map<uint64_t, FirstSum> sums_;         ///< by their contributions
  std::map<std::vector<uint32_t>, Summands> summands_;  ///< by the ranks that are added
};

}  // namespace mscclc::proof
