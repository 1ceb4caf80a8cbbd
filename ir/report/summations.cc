#include "ir/report/summations.h"

#include <fmt/format.h>

namespace mscclc {
namespace {

/// "a 'tree'", "an 'exact' sum"
std::string as_noun(Summation summation) {
  return summation == Summation::exact ? "an 'exact' sum" : fmt::format("a '{}'", name(summation));
}

/// What to do about too many sources.
std::string remedy(const SummationInfo& row) {
  if (row.summation == Summation::exact) return "its parts would be rounded, so there is no other";
  return fmt::format("add up {} at a time, and then their sums", row.most_sources);
}

}  // namespace

std::string summation_fault(const OpInfo& op, Summation summation, ReduceOp reduce,
                            size_t sources) {
  const SummationInfo& row = info(summation);
  if (summation == Summation::in_turn) return "";
  if (op.channels == kSwitch) {
    return fmt::format("'{}' cannot be {}: {}; 'read_reduce' reads the chunks of its ranks",
                       op.name, as_noun(summation), row.at_switches);
  }
  if (summation == Summation::exact && reduce == ReduceOp::prod) {
    return "no product is 'exact': leave the option out, or multiply two at a time";
  }
  if (sources <= row.most_sources) return "";
  return fmt::format("{} of {} sources, where an op takes {}: {}", as_noun(summation), sources,
                     row.most_sources, remedy(row));
}

}  // namespace mscclc
