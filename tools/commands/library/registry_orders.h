// What `mscclc registry check --order` says: how the plans of a folder add up, and which calls that
// the folder serves have no plan that keeps a contract.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/program/proof.h"
#include "tools/report/registry_coverage.h"

namespace mscclc {

/// A plan that adds up, for a call by name or for none.
struct SummingPlan {
  std::string file;
  LibraryCall call;  ///< kind and ranks
  Proof proof;
  bool by_name = true;
  /// What rows of a table say that it keeps, where there is a table.
  std::vector<SumOrder> rows = {};
};

/// Plans by how they add up, and which of them calls under `order` pass over.
std::string sums_table(std::span<const SummingPlan> plans, SumOrder order);

/// Calls of sizes that have a plan, but none under a contract.
struct UnservedCalls {
  LibraryCall call;
  std::vector<Dtype> dtypes;
  uint64_t min = 0, max = 0;  ///< bytes, both included
  std::string plan;           ///< that they have under `any`
};

/// `any`: what is picked under `any`; `under`: under the contract, of the same plans.
std::vector<UnservedCalls> unserved(const Coverage& any, const Coverage& under);
/// A line for each, or that there are none.
std::string unserved_text(std::span<const UnservedCalls> calls, SumOrder order);

}  // namespace mscclc
