// The host's model of a switch.
#include <algorithm>

#include "executor/cuda/host/grid.h"
#include "executor/cuda/testing/ranks_multicast.h"

namespace mscclc::cuda {

uint8_t* RanksMulticast::address_of(std::span<const RankBuffer> members) {
  std::vector<uint8_t*> memory;
  uint64_t bytes = members.front().bytes;
  for (const RankBuffer& member : members) {
    if (member.offset != members.front().offset) return nullptr;
    memory.push_back(member.address - member.offset);
    bytes = std::min(bytes, member.bytes);
  }
  const auto [at, fresh] = mapped_.try_emplace(memory, nullptr);
  if (fresh) at->second = host::Machine::get().gpu_switch.map(memory, bytes);
  return at->second + members.front().offset;
}

void RanksMulticast::clear() {
  for (const auto& [memory, address] : mapped_) host::Machine::get().gpu_switch.unmap(address);
  mapped_.clear();
}

}  // namespace mscclc::cuda
