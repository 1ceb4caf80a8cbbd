#include "passes/prove/processes/block_barriers.h"

#include <algorithm>
#include <utility>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

BlockBarriers::BlockBarriers(const System& system, ThreadBlocks& blocks, Knowledge& knowledge,
                             LoopRounds& rounds)
    : system_(system),
      blocks_(blocks),
      knowledge_(knowledge),
      rounds_(rounds),
      barriers_(system.ranks()) {}

BlockBarriers::Barrier& BlockBarriers::barrier_of(uint32_t rank, const Op& op) {
  std::vector<uint32_t> members;
  for (const Operand& o : system_.program().dsts(op)) members.push_back(o.first);
  std::ranges::sort(members);
  std::vector<Barrier>& barriers = barriers_[rank];
  auto barrier = std::ranges::find(barriers, members, &Barrier::blocks);
  if (barrier == barriers.end()) barrier = barriers.insert(barrier, {members, {}});
  return *barrier;
}

bool BlockBarriers::arrive(uint32_t process, const Op& op) {
  const uint32_t rank = blocks_[process].rank;
  Barrier& barrier = barrier_of(rank, op);
  barrier.arrived.push_back(process);
  if (barrier.arrived.size() <
      premise(Premise::barriers_wait_for_all, barrier.blocks.size(), barrier.blocks.size() - 1)) {
    return false;
  }
  const std::vector<uint32_t> arrived = std::exchange(barrier.arrived, {});
  Row all;
  for (const uint32_t p : arrived) {
    knowledge_.meet(p);
    learn(all, knowledge_.strong_news(p), system_.clock());
  }
  for (const uint32_t p : arrived) {
    blocks_[p].known = all;
    if (p == process) continue;
    rounds_.next_op(p, system_.program().ranks[rank].ops);
    blocks_.wake(p);
  }
  return true;
}

}  // namespace mscclc::proof
