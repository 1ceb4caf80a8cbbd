#include "executor/simulator/machine/lane_world.h"

namespace mscclc {

void ChannelClocks::arrive(const Clock* clock) {
  if (clock != nullptr) last.join(*clock);
  arrived.push_back(last);
}

uint64_t LaneWorld::hold(Hold::What what, uint32_t rank, uint32_t op, uint32_t lane,
                         uint64_t call) const {
  for (size_t i = 0; i < adversary.holds.size(); ++i) {
    const Hold& h = adversary.holds[i];
    if (h.what != what || h.rank != rank || h.call != call) continue;
    if (what != Hold::What::call && h.op != op) continue;
    const bool of_lane = what == Hold::What::op || what == Hold::What::access;
    if (of_lane && h.lane != Hold::kAllLanes && h.lane != lane) continue;
    return i + 1;
  }
  return 0;
}

void LaneWorld::await_held(const std::vector<uint32_t>& processes) {
  for (const uint32_t process : processes) {
    const uint64_t order = memory.held(process);
    if (order > 0) return scheduler.linger(order);
  }
}

// The end of a kernel: its accesses are done, for all.
void LaneWorld::end_call(uint32_t rank, const std::vector<uint32_t>& processes) {
  for (const uint32_t process : processes) {
    memory.settle_process(process);
    done[rank].join(clocks[process]);
  }
  memory.settle(done[rank]);
}

}  // namespace mscclc
