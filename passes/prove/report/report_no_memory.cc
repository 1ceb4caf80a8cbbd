// What is said where a proof takes more memory than there is.
#include <fmt/format.h>

#include "ir/report/op_error.h"
#include "passes/prove/report/report.h"

namespace mscclc::proof {
namespace {

/// The place in the text that most ops come from.
struct LargestSource {
  uint32_t rank = 0;
  const Op* op = nullptr;  ///< one of them; null if no op has a place
  uint64_t ops = 0, all = 0;
};

LargestSource largest_source(const Program& program) {
  std::vector<uint64_t> ops(program.sites.size(), 0);
  LargestSource largest;
  const auto each = [&](auto&& look) {
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      for (const Op& op : program.ranks[r].ops) {
        if (op.locations.count != 0) look(r, op, program.locations[op.locations.first].site);
      }
    }
  };
  each([&](uint32_t, const Op&, uint32_t site) { ++ops[site]; });
  each([&](uint32_t r, const Op& op, uint32_t site) {
    if (ops[site] > largest.ops) largest = {r, &op, ops[site], 0};
  });
  for (const Rank& rank : program.ranks) largest.all += rank.ops.size();
  return largest;
}

void add_remedy(Diagnostic& d) {
  d.notes.push_back(
      {"'mscclc compile --no-verify' compiles it without a proof; a proof takes less "
       "with fewer ranks, thread blocks or instances"});
}

}  // namespace

void report_no_memory(const Program& program, Diagnostics& diagnostics) {
  const std::string message =
      fmt::format("not decided: '{}' takes more memory to prove than there is", program.name);
  const LargestSource part = largest_source(program);
  if (part.op == nullptr) return add_remedy(diagnostics.error("undecided", {}, message));
  Diagnostic& d = op_error(diagnostics, "undecided", program, part.rank, *part.op, message);
  d.notes.push_back({fmt::format("{} of its {} ops come from here", part.ops, part.all)});
  add_remedy(d);
}

void report_no_memory(Diagnostics& diagnostics) {
  add_remedy(diagnostics.error(
      "undecided", {}, "not decided: the set of plans takes more memory to prove than there is"));
}

}  // namespace mscclc::proof
