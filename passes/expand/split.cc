// split: sorts each rank's ops by thread block, keeping the order within a block. This is the form
// that plans hold: written order across blocks has done its work once `sync` has run.
//
//   tb 0 { A }  tb 1 { B }  tb 0 { C }      =>      tb 0 { A ; C }  tb 1 { B }
#include <algorithm>

#include "passes/framework/passes.h"
#include "passes/framework/rank_work.h"

namespace mscclc {
namespace {

/// Sorts by counting: linear, stable, one new list.
void sort_by_block(Rank& rank, std::vector<uint32_t>& next) {
  if (std::is_sorted(rank.ops.begin(), rank.ops.end(),
                     [](const Op& a, const Op& b) { return a.block < b.block; })) {
    return;
  }
  next.assign(rank.blocks + 1, 0);
  for (const Op& op : rank.ops) ++next[op.block + 1];
  for (uint32_t b = 0; b < rank.blocks; ++b) next[b + 1] += next[b];
  std::vector<Op> sorted(rank.ops.size());
  for (const Op& op : rank.ops) sorted[next[op.block]++] = op;
  rank.ops = std::move(sorted);
}

}  // namespace

bool run_split(Program& program, PassContext& context) {
  program.split = work_on_ranks(program, context, [&](RankWork& work) {
    std::vector<uint32_t> next;
    for (uint32_t r = work.ranks.begin; r < work.ranks.end; ++r) {
      if (!settle_blocks(program, r, "split", work.context.diagnostics)) return false;
      sort_by_block(program.ranks[r], next);
    }
    return true;
  });
  return program.split;
}

}  // namespace mscclc
