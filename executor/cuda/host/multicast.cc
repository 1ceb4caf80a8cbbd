#include "executor/cuda/host/multicast.h"

#include <sys/mman.h>

#include <cstdlib>

namespace mscclc::cuda::host {

uint8_t* Switch::map(std::span<uint8_t* const> members, uint64_t bytes) {
  void* reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const address = static_cast<uint8_t*>(reserved);
  mappings_[address] = {{members.begin(), members.end()}, bytes};
  return address;
}

void Switch::unmap(uint8_t* address) {
  const auto found = mappings_.find(address);
  if (found == mappings_.end()) return;
  munmap(address, found->second.bytes);
  mappings_.erase(found);
}

std::span<uint8_t* const> Switch::members_at(const uint8_t* at, uint64_t& offset) {
  auto found = mappings_.upper_bound(const_cast<uint8_t*>(at));
  if (found == mappings_.begin()) std::abort();  // no multicast address
  --found;
  offset = static_cast<uint64_t>(at - found->first);
  if (offset + 16 > found->second.bytes) std::abort();
  ++accesses_;
  return found->second.members;
}

}  // namespace mscclc::cuda::host
