// The fake driver's multicast objects. What would block or be undefined is a misuse.
#pragma once

#include <vector>

#include "tests/fakes/cuda/fake_memory.h"

namespace mscclc::cuda {

class FakeMulticast : public virtual FakeMemory {
 public:
  /// For an address in a mapping of a multicast object: the first byte of each member's memory.
  std::vector<int> multicast_bytes(abi::Address address);

  abi::Result MulticastGetGranularity(size_t* bytes, const abi::MulticastProperties* properties,
                                      int option);
  abi::Result MulticastCreate(abi::Handle* object, const abi::MulticastProperties* properties);
  abi::Result MulticastAddDevice(abi::Handle object, abi::Ordinal device);
  abi::Result MulticastBindMem(abi::Handle object, size_t offset, abi::Handle memory,
                               size_t memory_offset, size_t bytes, unsigned long long flags);
  abi::Result MulticastUnbind(abi::Handle object, abi::Ordinal device, size_t offset, size_t bytes);

 protected:
  FakeMulticast() = default;
  ~FakeMulticast() = default;

 private:
  using Team = fake::Team;
};

}  // namespace mscclc::cuda
