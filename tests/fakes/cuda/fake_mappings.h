// The fake driver's virtual memory management: allocations, handles, mappings, and how they travel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "tests/fakes/cuda/fake_memory.h"

namespace mscclc::cuda {

class FakeMappings : public virtual FakeMemory {
 public:
  abi::Result MemGetAllocationGranularity(size_t* bytes,
                                          const abi::AllocationProperties* properties, int option);
  abi::Result MemCreate(abi::Handle* handle, size_t bytes,
                        const abi::AllocationProperties* properties, unsigned long long flags);
  abi::Result MemRelease(abi::Handle handle);
  abi::Result MemRetainAllocationHandle(abi::Handle* handle, void* address);
  abi::Result MemGetAllocationPropertiesFromHandle(abi::AllocationProperties* properties,
                                                   abi::Handle handle);
  abi::Result MemGetHandleForAddressRange(void* handle, abi::Address address, size_t bytes,
                                          abi::RangeHandleType type, unsigned long long flags);
  abi::Result MemExportToShareableHandle(void* shareable, abi::Handle handle, abi::HandleType type,
                                         unsigned long long flags);
  abi::Result MemImportFromShareableHandle(abi::Handle* handle, void* shareable,
                                           abi::HandleType type);
  abi::Result MemAddressReserve(abi::Address* address, size_t bytes, size_t alignment,
                                abi::Address wish, unsigned long long flags);
  abi::Result MemAddressFree(abi::Address address, size_t bytes);
  abi::Result MemMap(abi::Address address, size_t bytes, size_t offset, abi::Handle handle,
                     unsigned long long flags);
  abi::Result MemUnmap(abi::Address address, size_t bytes);
  abi::Result MemSetAccess(abi::Address address, size_t bytes, const abi::Access* access,
                           size_t count);

 protected:
  FakeMappings() = default;
  ~FakeMappings() = default;

 private:
  using HandleEntry = fake::HandleEntry;

  std::map<uint64_t, std::weak_ptr<Physical>> fabric_;  ///< by the number in the handle
};

}  // namespace mscclc::cuda
