// Where there is no switch.
#include "executor/cuda/testing/ranks_multicast.h"

namespace mscclc::cuda {

uint8_t* RanksMulticast::address_of(std::span<const RankBuffer>) { return nullptr; }

void RanksMulticast::clear() {}

}  // namespace mscclc::cuda
