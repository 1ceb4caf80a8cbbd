// Whether a row has the same bits in batches of every number of rows, in all plans that the library
// picks for sums under a contract (docs/bits.md): on the host device, each rank a thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/contract/order.h"
#include "ir/program/program.h"
#include "tests/orders/ordered_rows.h"
#include "tests/orders/row_batches.h"

namespace mscclc::testing {

/// The bits of one row, by rank, as the first plan of each collective and contract gave them.
/// REQUIRES: all plans are of one number of ranks, and all batches of one type and width.
class KnownRows {
 public:
  /// "" if each batch has the bits of the row alone, and this those that are known of its
  /// contracts. `rows.kind` does not count.
  std::string check(const OrderedRow& plan, RowBatches rows);
  /// Is a plan of this collective and contract known? Of `replicated` nothing needs to be.
  bool has(CollectiveKind kind, SumOrder order) const;

 private:
  std::map<std::pair<CollectiveKind, SumOrder>, std::vector<std::vector<uint8_t>>> known_;
};

/// Is the plan for this type, under a contract that says more than `replicated`, which leaves sums
/// to the size of a message?
bool is_compared(const OrderedRow& row, Dtype dtype);

/// Of the plan that the row picks.
CollectiveKind kind_of(const OrderedRow& row);

}  // namespace mscclc::testing
