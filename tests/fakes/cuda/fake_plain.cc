#include "tests/fakes/cuda/fake_plain.h"

#include <fmt/format.h>

#include <cstring>

namespace mscclc::cuda {
namespace {

abi::Address address_of(const void* pointer) {
  return static_cast<abi::Address>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace

abi::Result FakePlain::MemAlloc(abi::Address* address, size_t bytes) {
  const int device = current_device();
  if (device < 0) return misuse("allocates without a context", abi::kInvalidContext);
  if (bytes == 0) return abi::kInvalidValue;
  abi::Result result = abi::kSuccess;
  std::shared_ptr<Physical> memory = allocate_physical(device, bytes, 0, result);
  if (memory == nullptr) return result;
  *address = new_addresses(bytes);
  process().plain[*address] = {.memory = std::move(memory)};
  return abi::kSuccess;
}

abi::Result FakePlain::MemGetInfo(size_t* free, size_t* total) {
  const int device = current_device();
  if (device < 0) return misuse("asks for free memory without a context", abi::kInvalidContext);
  *total = options().memory;
  *free = options().memory - used(device);
  return abi::kSuccess;
}

abi::Address FakePlain::allocate_pooled(int device, uint64_t bytes) {
  const std::lock_guard lock(mutex());
  abi::Result result = abi::kSuccess;
  const abi::Address address = new_addresses(bytes);
  process().plain[address] = {.memory = allocate_physical(device, bytes, 0, result),
                              .pool = static_cast<uintptr_t>(0x900 + device)};
  return address;
}

abi::Address FakePlain::allocate_managed(int device, uint64_t bytes) {
  const std::lock_guard lock(mutex());
  abi::Result result = abi::kSuccess;
  const abi::Address address = new_addresses(bytes);
  process().plain[address] = {.memory = allocate_physical(device, bytes, 0, result),
                              .managed = true};
  return address;
}

void FakePlain::allocate_again(abi::Address address) {
  const std::lock_guard lock(mutex());
  abi::Result result = abi::kSuccess;
  const auto another = [&](const Physical& old) {
    return allocate_physical(old.device, old.bytes, old.handle_types, result);
  };
  if (const auto plain = process().plain.find(address); plain != process().plain.end()) {
    plain->second.memory = another(*plain->second.memory);
    return;
  }
  const auto mapping = process().mappings.find(address);
  if (mapping == process().mappings.end()) {
    misuse("a test allocates again where nothing is", abi::kIllegalAddress);
    return;
  }
  const abi::Handle old = mapping->second.handle, handle = new_number();
  mapping->second.memory = another(*mapping->second.memory);
  mapping->second.handle = handle;
  process().handles[handle] = {mapping->second.memory, 0, true};
  forget_unused_handle(process(), old);
}

abi::Result FakePlain::MemFree(abi::Address address) {
  if (current_device() < 0) return misuse("frees without a context", abi::kInvalidContext);
  if (process().plain.erase(address) == 0) {
    return misuse(fmt::format("frees {:#x}, which is not allocated", address), abi::kInvalidValue);
  }
  return abi::kSuccess;
}

abi::Result FakePlain::MemHostAlloc(void** address, size_t bytes, unsigned flags) {
  if (current_device() < 0) return misuse("allocates without a context", abi::kInvalidContext);
  if (flags != (abi::kHostPortable | abi::kHostDeviceMap)) {
    return misuse("pins host memory that other GPUs do not see", abi::kInvalidValue);
  }
  constexpr size_t kAlignment = 256;  // as cudaMalloc's
  if (::posix_memalign(address, kAlignment, bytes) != 0) return abi::kOutOfMemory;
  fake::PinnedBytes pinned(static_cast<uint8_t*>(*address));
  std::memset(*address, 0xa5, bytes);
  process().host[*address] = {bytes, std::move(pinned)};
  return abi::kSuccess;
}

abi::Result FakePlain::MemFreeHost(void* address) {
  if (current_device() < 0) return misuse("frees without a context", abi::kInvalidContext);
  if (process().host.erase(address) == 0) {
    return misuse("frees host memory that is not allocated", abi::kInvalidValue);
  }
  return abi::kSuccess;
}

abi::Result FakePlain::MemGetAddressRange(abi::Address* base, size_t* bytes, abi::Address address) {
  const auto plain = fake::find_range(process().plain, address, 1,
                                      [](const PlainEntry& entry) { return entry.memory->bytes; });
  if (plain != process().plain.end()) {
    *base = plain->first;
    *bytes = plain->second.memory->bytes;
    return abi::kSuccess;
  }
  const auto opened = fake::find_range(process().ipc, address, 1,
                                       [](const auto& entry) { return entry.memory->bytes; });
  if (opened != process().ipc.end()) {
    *base = opened->first;
    *bytes = opened->second.memory->bytes;
    return abi::kSuccess;
  }
  const auto reserved =
      fake::find_range(process().reservations, address, 1, [](uint64_t size) { return size; });
  if (reserved == process().reservations.end()) return abi::kNotFound;
  *base = reserved->first;
  *bytes = reserved->second;
  return abi::kSuccess;
}

abi::Result FakePlain::PointerGetAttribute(void* value, abi::PointerAttribute attribute,
                                           abi::Address address) {
  const auto put = [value](auto what) {
    std::memcpy(value, &what, sizeof what);
    return abi::kSuccess;
  };
  for (const auto& [at, entry] : process().host) {
    if (address < address_of(at) || address - address_of(at) >= entry.first) continue;
    if (attribute == abi::kMemoryType) return put(static_cast<unsigned>(abi::kHostMemory));
    if (attribute == abi::kBufferId) return put(static_cast<uint64_t>(address_of(at)));
    return attribute == abi::kIsManaged ? put(0u) : abi::kInvalidValue;
  }
  const auto plain = fake::find_range(process().plain, address, 1,
                                      [](const PlainEntry& entry) { return entry.memory->bytes; });
  const auto mapping = fake::find_range(process().mappings, address, 1,
                                        [](const MappingEntry& entry) { return entry.bytes; });
  const bool is_plain = plain != process().plain.end();
  if (!is_plain && mapping == process().mappings.end()) return abi::kInvalidValue;
  switch (attribute) {
    case abi::kMemoryType:
      return put(static_cast<unsigned>(abi::kDeviceMemory));
    case abi::kBufferId:
      return put(is_plain ? plain->second.memory->id : mapping->second.memory->id);
    case abi::kIsManaged:
      return put(is_plain && plain->second.managed ? 1u : 0u);
    case abi::kDeviceOrdinal:
      return put(is_plain ? plain->second.memory->device : mapping->second.memory->device);
    case abi::kIsLegacyIpcCapable:
      return put(is_plain && plain->second.pool == 0 ? 1 : 0);
    case abi::kMempoolHandle:
      return put(is_plain ? plain->second.pool : uintptr_t{0});
    case abi::kMappingBaseAddress:
      return put(is_plain ? plain->first : mapping->first);
    case abi::kMappingSize:
      return put(is_plain ? plain->second.memory->bytes : mapping->second.bytes);
  }
  return abi::kInvalidValue;
}

abi::Result FakePlain::MemPoolSetAccess(abi::Pool pool, const abi::Access* access, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    process().pools.insert({reinterpret_cast<uintptr_t>(pool), access[i].location.id});
  }
  return abi::kSuccess;
}

// A legacy handle names the process and the address.
abi::Result FakePlain::IpcGetMemHandle(abi::IpcHandle* handle, abi::Address address) {
  if (current_device() < 0) return misuse("exports without a context", abi::kInvalidContext);
  const auto found = process().plain.find(address);
  if (found == process().plain.end() || found->second.pool != 0) return abi::kInvalidValue;
  *handle = {};
  std::memcpy(handle->data, &process().id, sizeof(int));
  std::memcpy(handle->data + 8, &address, sizeof address);
  return abi::kSuccess;
}

abi::Result FakePlain::IpcOpenMemHandle(abi::Address* address, abi::IpcHandle handle, unsigned) {
  if (current_device() < 0) return misuse("imports without a context", abi::kInvalidContext);
  int owner = 0;
  abi::Address source = 0;
  std::memcpy(&owner, handle.data, sizeof owner);
  std::memcpy(&source, handle.data + 8, sizeof source);
  if (owner == process().id || processes().count(owner) == 0) return abi::kInvalidContext;
  const auto& plain = processes().at(owner)->plain;
  const auto found = plain.find(source);
  if (found == plain.end()) return abi::kInvalidValue;
  if (!options().peers) return abi::kNotSupported;
  for (auto& [at, entry] : process().ipc) {
    if (entry.source != source) continue;
    ++entry.opened;
    *address = at;
    return abi::kSuccess;
  }
  *address = new_addresses(found->second.memory->bytes);
  process().ipc[*address] = {found->second.memory, 1, source};
  return abi::kSuccess;
}

abi::Result FakePlain::IpcCloseMemHandle(abi::Address address) {
  if (current_device() < 0) return misuse("closes without a context", abi::kInvalidContext);
  const auto found = process().ipc.find(address);
  if (found == process().ipc.end()) {
    return misuse("closes a legacy handle that is not open", abi::kInvalidValue);
  }
  if (--found->second.opened == 0) process().ipc.erase(found);
  return abi::kSuccess;
}

}  // namespace mscclc::cuda
