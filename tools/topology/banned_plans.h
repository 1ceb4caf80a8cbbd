// The library's programs without banned links: which of them there is a plan of, and its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/contract/collectives.h"
#include "tools/topology/bans.h"

namespace mscclc::topology {

struct BanOptions {
  CollectiveKind kind = CollectiveKind::allreduce;
  uint32_t ranks = 0;
  std::vector<Ban> bans;
  std::string output;  ///< a folder for the plans; "": they are only listed
};

/// Prints a line for each program of the library of that kind for so many ranks on one node, and
/// writes those that are proved without a channel at a banned link. Returns the exit code: 1 if
/// there is none.
int list_plans_without(const BanOptions& options);

}  // namespace mscclc::topology
