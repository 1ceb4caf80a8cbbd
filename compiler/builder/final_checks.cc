#include "compiler/builder/final_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/builder/flag_order.h"
#include "compiler/builder/row_use.h"
#include "ir/report/op_error.h"
#include "ir/verify/row_faults.h"

namespace mscclc {
namespace {

class Checker {
 public:
  explicit Checker(BuilderState& state) : s_(state), p_(state.draft().program) {}

  void bodies() {
    for (uint32_t r = 0; r < s_.draft().ranks(); ++r) {
      if (!s_.draft().entered(r))
        s_.reports().fail("no-body", s_.draft().kind_mark, fmt::format("rank {} has no body", r));
    }
  }

  void externals() {
    for (uint32_t r = 0; r < s_.draft().ranks(); ++r) {
      const auto fault = external_writes_fault(p_, r);
      if (!fault) continue;
      op_error(s_.reports().diagnostics(), fault->code, p_, r, *fault->op, fault->message);
      s_.reports().set_failed();
    }
  }

  void empty_blocks() {
    uint32_t rank = kNone;
    std::vector<bool> used;
    for (const EmptyBlock& e : s_.parts().places().empty_blocks()) {
      if (e.rank != rank) used = used_blocks(rank = e.rank);
      if (used[e.block]) continue;
      Diagnostic& d =
          s_.reports().warn("empty-block", e.mark.end != 0 ? e.mark : s_.draft().kind_mark,
                            fmt::format("tb {} has no ops", e.block));
      d.notes.push_back({fmt::format("on rank {}", e.rank), d.span});
    }
  }

  /// A program that says it is split has its ops sorted by block.
  void split() {
    if (!p_.split) return;
    for (uint32_t r = 0; r < p_.ranks.size(); ++r) {
      uint32_t last = 0;
      for (const Op& op : p_.ranks[r].ops) {
        if (op.block != kNone && op.block >= last) {
          last = op.block;
          continue;
        }
        s_.reports().fail(
            "not-split", s_.draft().kind_mark,
            fmt::format("'split: true', but the ops of rank {} are not sorted by thread block", r));
        return;
      }
    }
  }

  void promises() {
    if (p_.contract.kind != CollectiveKind::custom) return;
    std::vector<Promise>& list = p_.contract.promises;
    // Wrong promises have been reported; they are no reason to say that there are none.
    if (list.empty() && !s_.reports().diagnostics().has_errors())
      s_.reports().warn("no-promise", s_.draft().kind_mark, "nothing is promised");
    std::vector<uint32_t> order(list.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto place = [&](uint32_t i) {
      return std::pair(list[i].output.rank, list[i].output.chunk);
    };
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return place(a) < place(b); });
    for (size_t i = 1; i < order.size(); ++i) {
      if (place(order[i - 1]) != place(order[i])) continue;
      Diagnostic& d = s_.reports().fail("promised-twice", s_.header().promise_mark(order[i]),
                                        fmt::format("two 'ensure' for output[{}] at rank {}",
                                                    place(order[i]).second, place(order[i]).first));
      s_.reports().note(d, s_.header().promise_mark(order[i - 1]), "the other is here");
    }
    p_.contract.sort_promises();
  }

 private:
  std::vector<bool> used_blocks(uint32_t rank) const {
    std::vector<bool> used(p_.ranks[rank].blocks);
    for (const Op& op : p_.ranks[rank].ops) {
      if (op.block != kNone) used[op.block] = true;
      if (op.group == kNone) continue;
      for (const int64_t b : p_.values(p_.groups[op.group])) used[static_cast<size_t>(b)] = true;
    }
    return used;
  }

  BuilderState& s_;
  Program& p_;
};

}  // namespace

bool make_final_checks(BuilderState& s) {
  Checker checker(s);
  s.parts().places().leave_rank();
  checker.bodies();
  checker.promises();
  checker.split();
  if (s.reports().failed()) return false;  // what follows would only repeat it
  const Program& program = s.draft().program;
  if (!program.foreign) s.parts().check_balances();
  if (!program.externals.empty()) checker.externals();
  if (!s.reports().failed() && !s.draft().flat) checker.empty_blocks();
  if (!s.reports().failed() && !s.draft().flat && !program.foreign) {
    warn_of_unused_rows(program, s.owned().names(), s.owned().layouts(), s.reports().diagnostics());
  }
  if (!s.reports().failed() && !s.draft().flat)
    warn_of_flag_order(program, s.reports().diagnostics());
  return !s.reports().failed();
}

}  // namespace mscclc
