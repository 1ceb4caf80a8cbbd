// Addresses at a switch for buffers of several ranks (device::BaseAddress::multicast). Ranks that
// share a GPU have none: only the host's model of a switch gives any (ranks_multicast_on_host.cc).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace mscclc::cuda {

/// A buffer of a rank, in memory of `bytes` that begins `offset` bytes before it.
struct RankBuffer {
  uint8_t* address = nullptr;
  uint64_t offset = 0, bytes = 0;
  /// What begins `more` bytes later in the same memory.
  RankBuffer shifted(uint64_t more) const { return {address + more, offset + more, bytes}; }
};

class RanksMulticast {
 public:
  RanksMulticast() = default;
  ~RanksMulticast() { clear(); }
  RanksMulticast(const RanksMulticast&) = delete;
  RanksMulticast& operator=(const RanksMulticast&) = delete;

  /// Where a switch reads and writes these buffers; nullptr: they lie differently in their memory,
  /// or there is no switch.
  uint8_t* address_of(std::span<const RankBuffer> members);
  bool empty() const { return mapped_.empty(); }
  void clear();

 private:
  std::map<std::vector<uint8_t*>, uint8_t*> mapped_;  ///< by the members' memory
};

}  // namespace mscclc::cuda
