// sync: ops of one rank that touch the same bytes, one of them writing, take effect in written
// order. What the author has not ordered is ordered here: by `sync` inside a thread block, by
// semaphores (or a barrier of a group's blocks) between blocks; see order_finder.h for these.
//
//   tb 0 { reduce output[0] <- input[0], inbox[0] }      tb 0 {
//   tb 1 { put up.output[0] <- output[0] }                 reduce output[0] <- input[0], inbox[0]
//                                                          sync
//                                                  =>      release order[0]
//                                                        }
//                                                        tb 1 {
//                                                          acquire order[0]
//                                                          sync
//                                                          put up.output[0] <- output[0]
//                                                        }
//
// What the author has written stays, except for syncs (and barriers) that order nothing. Under
// `launch auto_sync: false` nothing is changed: what is missing is an error. Running the pass on
// its own output changes nothing.

#include "passes/framework/passes.h"
#include "passes/framework/rank_work.h"
#include "passes/sync/block_syncs.h"
#include "passes/sync/check_order.h"
#include "passes/sync/drop_barriers.h"
#include "passes/sync/order_finder.h"

namespace mscclc::order {
namespace {

/// Puts the new ops of `order` into the list, and makes `order` speak of the new indexes.
void merge(Rank& rank, RankOrder& order) {
  std::vector<uint32_t> moved;
  order.inserts.merge(rank.ops, &moved);
  BlockNeeds& inside = order.inside;
  std::vector<uint32_t> after(rank.ops.size(), kNone);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (inside.after[i] != kNone) after[moved[i]] = moved[inside.after[i]];
  }
  inside.after.swap(after);
  for (uint32_t& head : inside.heads) head = moved[head];
}

void count(const RankOrder& order, PassContext& context) {
  context.count("semaphores inserted", order.semaphores);
  context.count("barriers inserted", order.barriers);
}

/// Puts in what some ranks need.
bool order_ranks(Program& program, RankWork& work) {
  OrderFinder finder(program, work);
  BlockSyncs syncs(program);
  RankOrder order;
  BlockSequence sequence;
  for (uint32_t r = work.ranks.begin; r < work.ranks.end; ++r) {
    Rank& rank = program.ranks[r];
    if (!settle_blocks(program, r, "sync", work.context.diagnostics)) return false;
    work.context.count("barriers removed", drop_repeated_barriers(program, r));
    if (!finder.find(r, order)) return false;
    count(order, work.context);
    if (order.inserts.empty()) {
      syncs.find(r, finder.sequence(), order.inside);
    } else {
      merge(rank, order);
      sequence.sort(rank);
      syncs.find(r, sequence, order.inside);
    }
    syncs.apply(rank, work.context);
  }
  return true;
}

}  // namespace
}  // namespace mscclc::order

namespace mscclc {

bool run_sync(Program& program, PassContext& context) {
  if (!program.launch.auto_sync) return order::check_order(program, context);
  const bool done = work_on_ranks(
      program, context, [&](RankWork& work) { return order::order_ranks(program, work); });
  order::name_orders(program);
  return done;
}

}  // namespace mscclc
