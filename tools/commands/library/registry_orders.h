// What `mscclc registry check --order` says: how the plans of a folder add up, and which calls that
// the folder serves have no plan that keeps a contract.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/program/proof.h"
#include "passes/prove/prove.h"
#include "tools/report/registry_coverage.h"

namespace mscclc {

/// A plan that adds up, for a call by name or for none.
struct SummingPlan {
  std::string file;
  LibraryCall call;  ///< kind, ranks and root
  Proof proof;
  SumExpressions sums;
  bool by_name = true;
  /// What rows of a table say that it keeps, where there is a table.
  std::vector<SumOrder> rows = {};
};

/// Plans by how they add up, and which of them calls under `order` pass over.
std::string sums_table(std::span<const SummingPlan> plans, SumOrder order);

/// What the sums are: plans in one class add up every element in the same way.
std::string expressions_table(std::span<const SummingPlan> plans);

/// A line for each of the calls that have a plan under `any`, but none under the contract; "":
/// there are none. Both are of the same plans; `sums` says what these keep.
std::string unserved_text(const Coverage& any, const Coverage& under,
                          std::span<const SummingPlan> sums, SumOrder order);

}  // namespace mscclc
