// The fake driver's other memory: as of cudaMalloc, of pools, pinned, legacy handles; and what it
// says of an address.
#pragma once

#include <cstdint>

#include "tests/fakes/cuda/fake_memory.h"

namespace mscclc::cuda {

class FakePlain : public virtual FakeMemory {
 public:
  /// What others in a process allocate; freed by driver().MemFree.
  abi::Address allocate_pooled(int device, uint64_t bytes);
  abi::Address allocate_managed(int device, uint64_t bytes);
  /// As if the memory at an address had been freed, and as much allocated, which lies there again.
  void allocate_again(abi::Address address);

  abi::Result MemAlloc(abi::Address* address, size_t bytes);
  abi::Result MemGetInfo(size_t* free, size_t* total);
  abi::Result MemFree(abi::Address address);
  abi::Result MemHostAlloc(void** address, size_t bytes, unsigned flags);
  abi::Result MemFreeHost(void* address);
  abi::Result MemGetAddressRange(abi::Address* base, size_t* bytes, abi::Address address);
  abi::Result PointerGetAttribute(void* value, abi::PointerAttribute attribute,
                                  abi::Address address);
  abi::Result MemPoolSetAccess(abi::Pool pool, const abi::Access* access, size_t count);
  abi::Result IpcGetMemHandle(abi::IpcHandle* handle, abi::Address address);
  abi::Result IpcOpenMemHandle(abi::Address* address, abi::IpcHandle handle, unsigned flags);
  abi::Result IpcCloseMemHandle(abi::Address address);

 protected:
  FakePlain() = default;
  ~FakePlain() = default;
};

}  // namespace mscclc::cuda
