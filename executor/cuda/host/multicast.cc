#include "executor/cuda/host/multicast.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <vector>

namespace mscclc::cuda::host {
namespace {

struct Mapping {
  std::vector<uint8_t*> members;
  uint64_t bytes;
};

/// What the model of the GPUs has of switches.
struct Switch {
  std::map<uint8_t*, Mapping> mappings;  ///< by multicast address
  uint64_t accesses = 0;
};

Switch& of_model() {
  static Switch all;
  return all;
}

}  // namespace

uint64_t multicast_accesses() { return of_model().accesses; }

uint8_t* map_multicast(std::span<uint8_t* const> members, uint64_t bytes) {
  void* reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const address = static_cast<uint8_t*>(reserved);
  of_model().mappings[address] = {{members.begin(), members.end()}, bytes};
  return address;
}

void unmap_multicast(uint8_t* address) {
  auto& mappings = of_model().mappings;
  const auto found = mappings.find(address);
  if (found == mappings.end()) return;
  munmap(address, found->second.bytes);
  mappings.erase(found);
}

std::span<uint8_t* const> members_of_multicast(const uint8_t* at, uint64_t& offset) {
  auto& mappings = of_model().mappings;
  auto found = mappings.upper_bound(const_cast<uint8_t*>(at));
  if (found == mappings.begin()) std::abort();  // no multicast address
  --found;
  offset = static_cast<uint64_t>(at - found->first);
  if (offset + 16 > found->second.bytes) std::abort();
  ++of_model().accesses;
  return found->second.members;
}

}  // namespace mscclc::cuda::host
