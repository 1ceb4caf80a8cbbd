#include "passes/sync/check_order.h"

#include "ir/print/print.h"
#include "ir/report/op_error.h"
#include "passes/framework/passes.h"
#include "passes/sync/block_syncs.h"
#include "passes/sync/order_finder.h"

namespace mscclc::order {

void report_missing_order(const Program& program, uint32_t rank, const Op& first, const Op& second,
                          std::string_view what, std::string_view why, Diagnostics& diagnostics) {
  Diagnostic& d = op_error(diagnostics, "missing-order", program, rank, second, std::string(what));
  d.notes.push_back(op_note(program, first,
                            "'" + print_op(program, rank, first) + "' (" +
                                print_place(program, rank, first) + "): " + std::string(why)));
  d.notes.push_back({"'launch auto_sync: false' leaves the order of ops to the program"});
}

namespace {

bool check_ranks(Program& program, RankWork& work) {
  OrderFinder finder(program, work);
  BlockSyncs syncs(program);
  RankOrder order;
  bool complete = true;
  Diagnostics& diagnostics = work.context.diagnostics;
  for (uint32_t r = work.ranks.begin; r < work.ranks.end; ++r) {
    if (!settle_blocks(program, r, "sync", diagnostics)) return false;
    if (!finder.find(r, order)) return false;
    complete &= order.missing == 0;
    syncs.find(r, finder.sequence(), order.inside);
    for (const MissingSync& m : syncs.missing()) {
      const std::vector<Op>& ops = program.ranks[r].ops;
      report_missing_order(program, r, ops[m.cause], ops[m.op],
                           "a 'sync' is missing before this op", m.why, diagnostics);
    }
    complete &= syncs.missing().empty();
  }
  return complete;
}

}  // namespace

bool check_order(Program& program, PassContext& context) {
  Additions additions(program, false);
  RankWork all{{0, static_cast<uint32_t>(program.ranks.size())}, additions, context};
  return check_ranks(program, all);
}

}  // namespace mscclc::order
