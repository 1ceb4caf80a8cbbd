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

std::optional<Error> summation_fault(const OpInfo& op, Summation summation, ReduceOp reduce,
                                     size_t sources) {
  const SummationInfo& row = info(summation);
  if (summation == Summation::in_turn) return std::nullopt;
  if (op.channels == kSwitch) {
    return Error{fmt::format("'{}' cannot be {}: {}", op.name, as_noun(summation), row.at_switches),
                 "'read_reduce' reads the chunks of its ranks"};
  }
  if (summation == Summation::exact && reduce == ReduceOp::prod) {
    return Error{"no product is 'exact': leave the option out, or multiply two at a time"};
  }
  if (sources <= row.most_sources) return std::nullopt;
  return Error{fmt::format("{} of {} sources, where an op takes {}: {}", as_noun(summation),
                           sources, row.most_sources, remedy(row))};
}

}  // namespace mscclc
