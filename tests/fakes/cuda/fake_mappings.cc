#include "tests/fakes/cuda/fake_mappings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

namespace mscclc::cuda {

abi::Result FakeMappings::MemGetAllocationGranularity(size_t* bytes,
                                                      const abi::AllocationProperties*, int) {
  *bytes = options().granule;
  return abi::kSuccess;
}

abi::Result FakeMappings::MemCreate(abi::Handle* handle, size_t bytes,
                                    const abi::AllocationProperties* properties,
                                    unsigned long long flags) {
  if (!options().mappings) return abi::kNotSupported;
  if (flags != 0 || properties->type != abi::kAllocationPinned ||
      properties->location.type != abi::kLocationDevice || bytes == 0 ||
      bytes % options().granule != 0) {
    return misuse(fmt::format("creates {} bytes, which are not whole granules", bytes),
                  abi::kInvalidValue);
  }
  if ((properties->handle_types & abi::kFabric) != 0 && !(options().fabric && options().imex)) {
    return abi::kNotPermitted;
  }
  if ((properties->handle_types & abi::kPosixFd) != 0 && !options().fd) return abi::kNotSupported;
  abi::Result result = abi::kSuccess;
  std::shared_ptr<Physical> memory =
      allocate_physical(properties->location.id, bytes, properties->handle_types, result);
  if (memory == nullptr) return result;
  memory->rdma = properties->gpu_direct_rdma != 0;
  *handle = new_number();
  process().handles[*handle] = {std::move(memory), 1, true};
  return abi::kSuccess;
}

abi::Result FakeMappings::MemRelease(abi::Handle handle) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end() || found->second.references == 0) {
    return misuse(fmt::format("releases handle {}, which it does not hold", handle),
                  abi::kInvalidValue);
  }
  --found->second.references;
  forget_unused_handle(process(), handle);
  return abi::kSuccess;
}

abi::Result FakeMappings::MemRetainAllocationHandle(abi::Handle* handle, void* address) {
  const auto at = static_cast<abi::Address>(reinterpret_cast<uintptr_t>(address));
  const auto mapping = fake::find_range(process().mappings, at, 1,
                                        [](const MappingEntry& entry) { return entry.bytes; });
  if (mapping == process().mappings.end()) return abi::kInvalidValue;
  *handle = mapping->second.handle;
  HandleEntry& entry = process().handles[*handle];
  entry.memory = mapping->second.memory;
  ++entry.references;
  return abi::kSuccess;
}

abi::Result FakeMappings::MemGetAllocationPropertiesFromHandle(
    abi::AllocationProperties* properties, abi::Handle handle) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end()) return misuse("asks about no handle", abi::kInvalidValue);
  *properties = {};
  properties->type = abi::kAllocationPinned;
  properties->handle_types = found->second.memory->handle_types;
  properties->location = {abi::kLocationDevice, found->second.memory->device};
  return abi::kSuccess;
}

// The descriptor stands only for the range: where that begins in the file is where it is read next.
abi::Result FakeMappings::MemGetHandleForAddressRange(void* handle, abi::Address address,
                                                      size_t bytes, abi::RangeHandleType type,
                                                      unsigned long long flags) {
  constexpr uint64_t kPage = 4096;
  if (current_device() < 0) return misuse("exports without a context", abi::kInvalidContext);
  const bool known = flags == 0 || flags == abi::kDmaBufByPci;
  if (type != abi::kDmaBufFd || !known || address % kPage != 0 || bytes % kPage != 0) {
    return misuse("asks for a dma-buf of parts of pages", abi::kInvalidValue);
  }
  if (!options().dma_buf || (flags != 0 && !options().by_pci)) return abi::kNotSupported;
  const auto mapping = fake::find_range(process().mappings, address, bytes,
                                        [](const MappingEntry& entry) { return entry.bytes; });
  if (mapping == process().mappings.end()) return abi::kInvalidValue;
  if (!mapping->second.memory->rdma) {
    return misuse("exports memory that was not made for network devices", abi::kNotSupported);
  }
  const int fd = mapping->second.memory->share();
  if (fd < 0) return abi::kUnknown;
  if (lseek(fd, static_cast<off_t>(address - mapping->first), SEEK_SET) < 0) return abi::kUnknown;
  std::memcpy(handle, &fd, sizeof fd);
  return abi::kSuccess;
}

abi::Result FakeMappings::MemExportToShareableHandle(void* shareable, abi::Handle handle,
                                                     abi::HandleType type, unsigned long long) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end() || found->second.references == 0) {
    return misuse("exports a handle that it does not hold", abi::kInvalidValue);
  }
  const std::shared_ptr<Physical>& memory = found->second.memory;
  if ((memory->handle_types & type) == 0) {
    return misuse("exports a handle as a type that was not asked for", abi::kInvalidValue);
  }
  if (type == abi::kFabric) {
    const uint64_t number = new_number();
    fabric_[number] = memory;  // refers to it, does not keep it
    std::memset(shareable, 0, sizeof(abi::FabricHandle));
    std::memcpy(shareable, &number, sizeof number);
    return abi::kSuccess;
  }
  const int fd = open_descriptor(memory);
  if (fd < 0) return abi::kUnknown;
  std::memcpy(shareable, &fd, sizeof fd);
  return abi::kSuccess;
}

abi::Result FakeMappings::MemImportFromShareableHandle(abi::Handle* handle, void* shareable,
                                                       abi::HandleType type) {
  std::shared_ptr<Physical> memory;
  if (type == abi::kFabric) {
    if (!options().imex) return abi::kNotPermitted;
    uint64_t number = 0;
    std::memcpy(&number, shareable, sizeof number);
    const auto found = fabric_.find(number);
    if (found == fabric_.end()) return abi::kInvalidValue;
    memory = found->second.lock();
    if (memory == nullptr) {
      return misuse("imports a fabric handle whose allocation has ended", abi::kInvalidValue);
    }
  } else {
    memory = find_descriptor(static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
    if (memory == nullptr) return abi::kInvalidValue;
  }
  *handle = new_number();
  process().handles[*handle] = {std::move(memory), 1};
  return abi::kSuccess;
}

abi::Result FakeMappings::MemAddressReserve(abi::Address* address, size_t bytes, size_t alignment,
                                            abi::Address, unsigned long long flags) {
  if (flags != 0 || bytes == 0 || bytes % options().granule != 0) {
    return misuse("reserves addresses that are not whole granules", abi::kInvalidValue);
  }
  // Real ones are reserved in larger steps than asked for; these are exact, so that errors show.
  *address = new_addresses(bytes, alignment == 0 ? 1 : alignment);
  process().reservations[*address] = bytes;
  return abi::kSuccess;
}

abi::Result FakeMappings::MemAddressFree(abi::Address address, size_t bytes) {
  const auto found = process().reservations.find(address);
  if (found == process().reservations.end() || found->second != bytes) {
    return misuse("frees addresses that are not reserved", abi::kInvalidValue);
  }
  const auto mapping = process().mappings.lower_bound(address);
  if (mapping != process().mappings.end() && mapping->first < address + bytes) {
    return misuse("frees addresses that are mapped", abi::kInvalidValue);
  }
  process().reservations.erase(found);
  return abi::kSuccess;
}

abi::Result FakeMappings::MemMap(abi::Address address, size_t bytes, size_t offset,
                                 abi::Handle handle, unsigned long long flags) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end() || found->second.references == 0) {
    return misuse("maps a handle that it does not hold", abi::kInvalidValue);
  }
  const std::shared_ptr<Physical>& memory = found->second.memory;
  if (offset != 0 || flags != 0) return misuse("maps at an offset", abi::kInvalidValue);
  if (bytes == 0 || bytes % options().granule != 0) return abi::kInvalidValue;
  if (bytes > memory->bytes) return abi::kInvalidValue;
  const auto reserved =
      fake::find_range(process().reservations, address, bytes, [](uint64_t size) { return size; });
  if (reserved == process().reservations.end()) {
    return misuse("maps where no addresses are reserved", abi::kInvalidValue);
  }
  if (memory->team != nullptr && address % options().multicast_granule != 0) {
    return misuse("maps a multicast object at an unaligned address", abi::kInvalidValue);
  }
  if (memory->team != nullptr && memory->team->devices.size() < memory->team->size) {
    return misuse("maps a multicast object before all devices are there (this would block)",
                  abi::kIllegalState);
  }
  if (process().mappings.count(address) != 0) {
    return misuse("maps a mapped address", abi::kAlreadyMapped);
  }
  process().mappings[address] = {bytes, handle, memory, {}};
  return abi::kSuccess;
}

abi::Result FakeMappings::MemUnmap(abi::Address address, size_t bytes) {
  const auto found = process().mappings.find(address);
  if (found == process().mappings.end() || found->second.bytes != bytes) {
    return misuse("unmaps what is not mapped", abi::kInvalidValue);
  }
  const abi::Handle handle = found->second.handle;
  process().mappings.erase(found);
  forget_unused_handle(process(), handle);
  return abi::kSuccess;
}

abi::Result FakeMappings::MemSetAccess(abi::Address address, size_t bytes,
                                       const abi::Access* access, size_t count) {
  const auto found = process().mappings.find(address);
  if (found == process().mappings.end() || found->second.bytes != bytes) {
    return misuse("gives access to what is not mapped", abi::kInvalidValue);
  }
  for (size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    const bool own = device == found->second.memory->device || found->second.memory->team;
    if (!own && !options().peers) return abi::kNotSupported;
    found->second.devices.insert(device);
  }
  return abi::kSuccess;
}

}  // namespace mscclc::cuda
