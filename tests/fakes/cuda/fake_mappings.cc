// The fake driver's virtual memory management: allocations, handles, mappings, and how they travel.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/cuda/fake_model.h"

namespace mscclc::cuda {
namespace {

uint64_t inode_of(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::shared_ptr<FakeDriver::Physical> FakeDriver::allocate_physical(int device, uint64_t bytes,
                                                                    int handle_types,
                                                                    abi::Result& result) {
  if (bytes > options_.memory - used(device)) {
    result = abi::kOutOfMemory;
    return nullptr;
  }
  auto memory = std::make_shared<Physical>();
  memory->device = device;
  memory->bytes = bytes;
  memory->handle_types = handle_types;
  memory->id = next_number_++;
  all_.push_back(memory);
  result = abi::kSuccess;
  return memory;
}

abi::Address FakeDriver::new_addresses(uint64_t bytes, uint64_t alignment) {
  const abi::Address address = (next_address_ + alignment - 1) / alignment * alignment;
  next_address_ = address + (bytes / options_.granule + 2) * options_.granule;  // a gap after each
  return address;
}

abi::Result FakeDriver::MemGetAllocationGranularity(size_t* bytes, const abi::AllocationProperties*,
                                                    int) {
  *bytes = options_.granule;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemCreate(abi::Handle* handle, size_t bytes,
                                  const abi::AllocationProperties* properties,
                                  unsigned long long flags) {
  if (!options_.mappings) return abi::kNotSupported;
  if (flags != 0 || properties->type != abi::kAllocationPinned ||
      properties->location.type != abi::kLocationDevice || bytes == 0 ||
      bytes % options_.granule != 0) {
    return misuse(fmt::format("creates {} bytes, which are not whole granules", bytes),
                  abi::kInvalidValue);
  }
  if ((properties->handle_types & abi::kFabric) != 0 && !(options_.fabric && options_.imex)) {
    return abi::kNotPermitted;
  }
  if ((properties->handle_types & abi::kPosixFd) != 0 && !options_.fd) return abi::kNotSupported;
  abi::Result result = abi::kSuccess;
  std::shared_ptr<Physical> memory =
      allocate_physical(properties->location.id, bytes, properties->handle_types, result);
  if (memory == nullptr) return result;
  memory->rdma = properties->gpu_direct_rdma != 0;
  *handle = next_number_++;
  process().handles[*handle] = {std::move(memory), 1, true};
  return abi::kSuccess;
}

abi::Result FakeDriver::MemRelease(abi::Handle handle) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end() || found->second.references == 0) {
    return misuse(fmt::format("releases handle {}, which it does not hold", handle),
                  abi::kInvalidValue);
  }
  --found->second.references;
  forget_unused_handle(process(), handle);
  return abi::kSuccess;
}

// A mapping remembers its handle, which retain() gives out again.
void FakeDriver::forget_unused_handle(Process& process, abi::Handle handle) {
  const auto found = process.handles.find(handle);
  if (found == process.handles.end() || found->second.references > 0) return;
  for (const auto& [address, mapping] : process.mappings) {
    if (mapping.handle == handle) return;
  }
  const std::shared_ptr<Physical> memory = found->second.memory;
  process.handles.erase(found);
  if (memory->team == nullptr || memory.use_count() > 1) return;
  for (const auto& [device, bindings] : memory->team->bindings) {
    if (!bindings.empty()) misuse("ends a multicast object with memory bound to it", abi::kUnknown);
  }
}

abi::Result FakeDriver::MemRetainAllocationHandle(abi::Handle* handle, void* address) {
  const auto at = static_cast<abi::Address>(reinterpret_cast<uintptr_t>(address));
  const auto mapping =
      find_range(process().mappings, at, 1, [](const MappingEntry& entry) { return entry.bytes; });
  if (mapping == process().mappings.end()) return abi::kInvalidValue;
  *handle = mapping->second.handle;
  HandleEntry& entry = process().handles[*handle];
  entry.memory = mapping->second.memory;
  ++entry.references;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemGetAllocationPropertiesFromHandle(abi::AllocationProperties* properties,
                                                             abi::Handle handle) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end()) return misuse("asks about no handle", abi::kInvalidValue);
  *properties = {};
  properties->type = abi::kAllocationPinned;
  properties->handle_types = found->second.memory->handle_types;
  properties->location = {abi::kLocationDevice, found->second.memory->device};
  return abi::kSuccess;
}

FakeDriver::Physical::~Physical() {
  if (shared == nullptr) return;
  munmap(shared, bytes);
  close(file);
}

int FakeDriver::Physical::share() {
  if (shared == nullptr) {
    file = memfd_create("fake dma-buf", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return -1;
    void* const map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) return -1;
    std::memcpy(map, at(0), bytes);
    shared = static_cast<uint8_t*>(map);
    data = {};
  }
  return open(fmt::format("/proc/self/fd/{}", file).c_str(), O_RDWR | O_CLOEXEC);
}

// The descriptor stands only for the range: where that begins in the file is where it is read next.
abi::Result FakeDriver::MemGetHandleForAddressRange(void* handle, abi::Address address,
                                                    size_t bytes, abi::RangeHandleType type,
                                                    unsigned long long flags) {
  constexpr uint64_t kPage = 4096;
  if (current_device() < 0) return misuse("exports without a context", abi::kInvalidContext);
  const bool known = flags == 0 || flags == abi::kDmaBufByPci;
  if (type != abi::kDmaBufFd || !known || address % kPage != 0 || bytes % kPage != 0) {
    return misuse("asks for a dma-buf of parts of pages", abi::kInvalidValue);
  }
  if (!options_.dma_buf || (flags != 0 && !options_.by_pci)) return abi::kNotSupported;
  const auto mapping = find_range(process().mappings, address, bytes,
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

// A descriptor is an end of a pipe: the other end shows when all copies of it have been closed.
abi::Result FakeDriver::MemExportToShareableHandle(void* shareable, abi::Handle handle,
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
    const uint64_t number = next_number_++;
    fabric_[number] = memory;  // refers to it, does not keep it
    std::memset(shareable, 0, sizeof(abi::FabricHandle));
    std::memcpy(shareable, &number, sizeof number);
    return abi::kSuccess;
  }
  collect_descriptors();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return abi::kUnknown;
  const uint64_t inode = inode_of(ends[1]);
  descriptors_[inode] = memory;
  descriptor_ends_[inode] = ends[0];
  std::memcpy(shareable, &ends[1], sizeof ends[1]);
  return abi::kSuccess;
}

abi::Result FakeDriver::MemImportFromShareableHandle(abi::Handle* handle, void* shareable,
                                                     abi::HandleType type) {
  std::shared_ptr<Physical> memory;
  if (type == abi::kFabric) {
    if (!options_.imex) return abi::kNotPermitted;
    uint64_t number = 0;
    std::memcpy(&number, shareable, sizeof number);
    const auto found = fabric_.find(number);
    if (found == fabric_.end()) return abi::kInvalidValue;
    memory = found->second.lock();
    if (memory == nullptr) {
      return misuse("imports a fabric handle whose allocation has ended", abi::kInvalidValue);
    }
  } else {
    const int fd = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
    const auto found = descriptors_.find(inode_of(fd));
    if (found == descriptors_.end()) return abi::kInvalidValue;
    memory = found->second;
  }
  *handle = next_number_++;
  process().handles[*handle] = {std::move(memory), 1};
  return abi::kSuccess;
}

abi::Result FakeDriver::MemAddressReserve(abi::Address* address, size_t bytes, size_t alignment,
                                          abi::Address, unsigned long long flags) {
  if (flags != 0 || bytes == 0 || bytes % options_.granule != 0) {
    return misuse("reserves addresses that are not whole granules", abi::kInvalidValue);
  }
  // Real ones are reserved in larger steps than asked for; these are exact, so that errors show.
  *address = new_addresses(bytes, alignment == 0 ? 1 : alignment);
  process().reservations[*address] = bytes;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemAddressFree(abi::Address address, size_t bytes) {
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

abi::Result FakeDriver::MemMap(abi::Address address, size_t bytes, size_t offset,
                               abi::Handle handle, unsigned long long flags) {
  const auto found = process().handles.find(handle);
  if (found == process().handles.end() || found->second.references == 0) {
    return misuse("maps a handle that it does not hold", abi::kInvalidValue);
  }
  const std::shared_ptr<Physical>& memory = found->second.memory;
  if (offset != 0 || flags != 0) return misuse("maps at an offset", abi::kInvalidValue);
  if (bytes == 0 || bytes % options_.granule != 0) return abi::kInvalidValue;
  if (bytes > memory->bytes) return abi::kInvalidValue;
  const auto reserved =
      find_range(process().reservations, address, bytes, [](uint64_t size) { return size; });
  if (reserved == process().reservations.end()) {
    return misuse("maps where no addresses are reserved", abi::kInvalidValue);
  }
  if (memory->team != nullptr && address % options_.multicast_granule != 0) {
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

abi::Result FakeDriver::MemUnmap(abi::Address address, size_t bytes) {
  const auto found = process().mappings.find(address);
  if (found == process().mappings.end() || found->second.bytes != bytes) {
    return misuse("unmaps what is not mapped", abi::kInvalidValue);
  }
  const abi::Handle handle = found->second.handle;
  process().mappings.erase(found);
  forget_unused_handle(process(), handle);
  return abi::kSuccess;
}

abi::Result FakeDriver::MemSetAccess(abi::Address address, size_t bytes, const abi::Access* access,
                                     size_t count) {
  const auto found = process().mappings.find(address);
  if (found == process().mappings.end() || found->second.bytes != bytes) {
    return misuse("gives access to what is not mapped", abi::kInvalidValue);
  }
  for (size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    const bool own = device == found->second.memory->device || found->second.memory->team;
    if (!own && !options_.peers) return abi::kNotSupported;
    found->second.devices.insert(device);
  }
  return abi::kSuccess;
}

}  // namespace mscclc::cuda
