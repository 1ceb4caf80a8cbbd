// MSCCL++'s plans beside ours: which library program is the port of which plan, and what both
// cost. docs/design/passes.md shows the table; a test holds it to what is measured here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/result.h"

namespace mscclc {

struct PortedPlan {
  std::string_view plan;     ///< tests/mscclpp_plans/<plan>.json
  std::string_view program;  ///< plans/<program>.mscl
  std::string_view defines;  ///< its -D options, separated by spaces: "R=4 B=1"
  std::string_view excuse;   ///< why a number of ours is larger; "" if none is
  std::string_view remark;   ///< what else a reader should know
};
/// The names and values in `defines`.
std::vector<std::pair<std::string, std::string>> split_defines(const PortedPlan& port);

/// All of MSCCL++'s plans, in the order of the table.
const std::vector<PortedPlan>& ported_plans();

/// What a plan asks of a rank's thread blocks; the largest of all blocks, or ranks.
struct PlanCost {
  int blocks = 0;      ///< with ops, of a rank
  int ops = 0;         ///< of a block: data ops, synchronisations, pipelines and what is in them
  int syncs = 0;       ///< of a block: those that move no data
  double scratch = 0;  ///< of a rank, in messages (the larger of input and output), packets in full
};

/// Reads tests/mscclpp_plans/<plan>.json. REQUIRES: runs in the repository root.
PlanCost mscclpp_cost(const PortedPlan& port);
/// Compiles the program with all passes. Its errors are one text.
Result<PlanCost> our_cost(const PortedPlan& port);

/// The table of docs/design/passes.md, if all programs compile.
Result<std::string> ported_plans_table();
/// `page` with its table replaced by `table`; "" if the page has no place for one.
std::string with_table(const std::string& page, const std::string& table);

}  // namespace mscclc
