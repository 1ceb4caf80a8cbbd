#include "ir/report/trees.h"

#include <fmt/format.h>

#include "ir/ops/trees.h"

namespace mscclc {

std::string tree_fault(const OpInfo& op, size_t sources) {
  if (op.channels == kSwitch) {
    return fmt::format(
        "'{}' cannot be a 'tree': a switch adds up in an order of its own; 'read_reduce' "
        "reads the chunks of its ranks",
        op.name);
  }
  if (sources <= kMostTreeSources) return "";
  return fmt::format(
      "a 'tree' of {} sources, where an op takes {}: add up {} at a time, and then "
      "their sums",
      sources, kMostTreeSources, kMostTreeSources);
}

}  // namespace mscclc
