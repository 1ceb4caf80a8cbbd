#include "tests/fakes/cuda/fake_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace mscclc::cuda {
namespace {

uint64_t inode_of(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

namespace fake {

Physical::~Physical() {
  if (shared == nullptr) return;
  munmap(shared, bytes);
  close(file);
}

int Physical::share() {
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

}  // namespace fake

FakeMemory::~FakeMemory() {
  for (const auto& [inode, end] : descriptor_ends_) close(end);
}

// Whose descriptors have all been closed refers to nothing any more.
void FakeMemory::collect_descriptors() {
  for (auto end = descriptor_ends_.begin(); end != descriptor_ends_.end();) {
    pollfd poll_end = {end->second, 0, 0};
    if (poll(&poll_end, 1, 0) == 1 && (poll_end.revents & POLLHUP) != 0) {
      close(end->second);
      descriptors_.erase(end->first);
      end = descriptor_ends_.erase(end);
    } else {
      ++end;
    }
  }
}

uint64_t FakeMemory::used(int device) {
  uint64_t sum = 0;
  std::erase_if(all_, [](const std::weak_ptr<Physical>& memory) { return memory.expired(); });
  for (const std::weak_ptr<Physical>& memory : all_) {
    const std::shared_ptr<Physical> alive = memory.lock();
    if (alive != nullptr && alive->device == device) sum += alive->bytes;
  }
  return sum;
}

uint64_t FakeMemory::allocated(int device) {
  const std::lock_guard lock(mutex());
  collect_descriptors();
  return used(device);
}

uint64_t FakeMemory::most_allocated(int device) {
  const std::lock_guard lock(mutex());
  return most_[device];
}

std::shared_ptr<fake::Physical> FakeMemory::allocate_physical(int device, uint64_t bytes,
                                                              int handle_types,
                                                              abi::Result& result) {
  const uint64_t before = used(device);
  if (bytes > options().memory - before) {
    result = abi::kOutOfMemory;
    return nullptr;
  }
  auto memory = std::make_shared<Physical>();
  memory->device = device;
  memory->bytes = bytes;
  memory->handle_types = handle_types;
  memory->id = new_number();
  all_.push_back(memory);
  most_[device] = std::max(most_[device], before + bytes);
  result = abi::kSuccess;
  return memory;
}

abi::Address FakeMemory::new_addresses(uint64_t bytes, uint64_t alignment) {
  const abi::Address address = (next_address_ + alignment - 1) / alignment * alignment;
  next_address_ =
      address + (bytes / options().granule + 2) * options().granule;  // a gap after each
  return address;
}

// A mapping remembers its handle, which retain() gives out again.
void FakeMemory::forget_unused_handle(Process& process, abi::Handle handle) {
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

bool FakeMemory::resolve(Process& p, abi::Address address, uint64_t bytes, int device, Span& span) {
  const auto fail = [&](const char* why) {
    misuse(fmt::format("cuda:{} touches {} bytes at {:#x}: {}", device, bytes, address, why),
           abi::kIllegalAddress);
    return false;
  };
  if (address < kFirstAddress || address >= next_address_) {
    span.at = reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(address));
    return true;
  }
  const auto plain = fake::find_range(p.plain, address, bytes,
                                      [](const PlainEntry& entry) { return entry.memory->bytes; });
  if (plain != p.plain.end()) {
    const PlainEntry& entry = plain->second;
    const int owner = entry.memory->device;
    const bool may =
        owner == device || (entry.pool == 0 ? p.peers.count({device, owner}) != 0
                                            : p.pools.count({entry.pool, device}) != 0);
    if (!may) return fail("no access to that GPU");
    span.at = entry.memory->at(address - plain->first);
    return true;
  }
  const auto ipc = fake::find_range(p.ipc, address, bytes,
                                    [](const IpcEntry& entry) { return entry.memory->bytes; });
  if (ipc != p.ipc.end()) {
    span.at = ipc->second.memory->at(address - ipc->first);
    return true;
  }
  const auto mapping = fake::find_range(p.mappings, address, bytes,
                                        [](const MappingEntry& entry) { return entry.bytes; });
  if (mapping == p.mappings.end()) return fail("nothing is there");
  if (mapping->second.devices.count(device) == 0) return fail("no access to the mapping");
  if (mapping->second.memory->team != nullptr) return fail("not a multimem access");
  span.at = mapping->second.memory->at(address - mapping->first);
  return true;
}

std::vector<uint8_t> FakeMemory::bytes_at(abi::Address address, uint64_t bytes) {
  const std::lock_guard lock(mutex());
  const auto mapping = fake::find_range(process().mappings, address, bytes,
                                        [](const MappingEntry& entry) { return entry.bytes; });
  const int device = mapping == process().mappings.end() || mapping->second.devices.empty()
                         ? process().contexts.begin()->first
                         : *mapping->second.devices.begin();
  Span span = {};
  if (!resolve(process(), address, bytes, device, span)) return {};
  return {span.at, span.at + bytes};
}

void FakeMemory::set_bytes(abi::Address address, const std::vector<uint8_t>& bytes) {
  const std::lock_guard lock(mutex());
  const auto mapping = fake::find_range(process().mappings, address, bytes.size(),
                                        [](const MappingEntry& entry) { return entry.bytes; });
  const auto plain = fake::find_range(process().plain, address, bytes.size(),
                                      [](const PlainEntry& entry) { return entry.memory->bytes; });
  if (mapping != process().mappings.end()) {
    std::memcpy(mapping->second.memory->at(address - mapping->first), bytes.data(), bytes.size());
  } else if (plain != process().plain.end()) {
    std::memcpy(plain->second.memory->at(address - plain->first), bytes.data(), bytes.size());
  } else {
    misuse("a test writes where nothing is", abi::kIllegalAddress);
  }
}

// A descriptor is an end of a pipe: the other end shows when all copies of it have been closed.
int FakeMemory::open_descriptor(const std::shared_ptr<Physical>& memory) {
  collect_descriptors();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const uint64_t inode = inode_of(ends[1]);
  descriptors_[inode] = memory;
  descriptor_ends_[inode] = ends[0];
  return ends[1];
}

std::shared_ptr<fake::Physical> FakeMemory::find_descriptor(int fd) const {
  const auto found = descriptors_.find(inode_of(fd));
  return found == descriptors_.end() ? nullptr : found->second;
}

std::vector<uint64_t> FakeMemory::kept_by_descriptors() {
  collect_descriptors();
  std::vector<uint64_t> kept;
  for (const auto& [inode, memory] : descriptors_) kept.push_back(memory->bytes);
  return kept;
}

}  // namespace mscclc::cuda
