// Multicast addresses without a switch: what stands for the memory of several members at once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace mscclc::cuda::host {

class Switch {
 public:
  /// Makes an address that stands for `bytes` of memory at all members. Only the switch can use it:
  /// other accesses fault. Lives until unmap().
  uint8_t* map(std::span<uint8_t* const> members, uint64_t bytes);
  void unmap(uint8_t* address);
  /// Accesses through multicast addresses so far, each once for all members.
  uint64_t accesses() const { return accesses_; }
  /// Where `at`, a part of a multicast address, lies at each member; counts an access.
  std::span<uint8_t* const> members_at(const uint8_t* at, uint64_t& offset);

 private:
  struct Mapping {
    std::vector<uint8_t*> members;
    uint64_t bytes;
  };
  std::map<uint8_t*, Mapping> mappings_;  ///< by multicast address
  uint64_t accesses_ = 0;
};

}  // namespace mscclc::cuda::host
