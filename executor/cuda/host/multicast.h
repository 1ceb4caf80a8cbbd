// Multicast addresses without a switch: what stands for the memory of several members at once.
#pragma once

#include <cstdint>
#include <span>

namespace mscclc::cuda::host {

/// Makes an address that stands for `bytes` of memory at all members. Only a switch can use it:
/// other accesses fault. Lives until unmap_multicast().
uint8_t* map_multicast(std::span<uint8_t* const> members, uint64_t bytes);
void unmap_multicast(uint8_t* address);
/// Accesses through multicast addresses so far, each once for all members.
uint64_t multicast_accesses();
/// Where `at`, a part of a multicast address, lies at each member; counts an access.
std::span<uint8_t* const> members_of_multicast(const uint8_t* at, uint64_t& offset);

}  // namespace mscclc::cuda::host
