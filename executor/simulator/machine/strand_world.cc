#include "executor/simulator/machine/strand_world.h"

namespace mscclc {

void ChannelClocks::arrive(const Clock* clock) {
  if (clock != nullptr) last.join(*clock);
  arrived.push_back(last);
}

uint64_t StrandWorld::hold(Hold::What what, uint32_t rank, uint32_t op, uint32_t strand,
                           uint64_t call) const {
  for (size_t i = 0; i < adversary.holds.size(); ++i) {
    const Hold& h = adversary.holds[i];
    if (h.what != what || h.rank != rank || h.call != call) continue;
    if (what != Hold::What::call && h.op != op) continue;
    const bool of_strand = what == Hold::What::op || what == Hold::What::access;
    if (of_strand && h.strand != Hold::kAllStrands && h.strand != strand) continue;
    return i + 1;
  }
  return 0;
}

void StrandWorld::await_held(const std::vector<uint32_t>& processes) {
  for (const uint32_t process : processes) {
    const uint64_t order = memory.held(process);
    if (order > 0) return scheduler.linger(order);
  }
}

// The end of a kernel: its accesses are done, for all.
void StrandWorld::end_call(uint32_t rank, const std::vector<uint32_t>& processes) {
  for (const uint32_t process : processes) {
    memory.settle_process(process);
    done[rank].join(clocks[process]);
  }
  memory.settle(done[rank]);
}

}  // namespace mscclc
