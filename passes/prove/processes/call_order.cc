#include "passes/prove/processes/call_order.h"

namespace mscclc::proof {

bool CallOrder::all_ended() const {
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    if (now(r) < count(r)) return false;
  }
  return true;
}

uint64_t CallOrder::instance(uint32_t rank, uint32_t call) const {
  if (!system_.joint()) return call;
  const std::vector<uint32_t>& order = options_.order[rank];
  uint64_t earlier = 0;
  for (uint32_t i = 0; i < call; ++i) earlier += order[i] == order[call] ? 1 : 0;
  return earlier * system_.parts().size() + order[call];
}

uint32_t CallOrder::call_of(uint32_t rank, uint64_t wanted) const {
  uint32_t call = 0;
  while (instance(rank, call) != wanted) ++call;
  return call;
}

uint32_t CallOrder::end_of_blocks(uint32_t rank) const {
  const Part& of = part(rank, now(rank));
  return of.first_block[rank] + of.rank(rank).blocks;
}

}  // namespace mscclc::proof
