#include "tests/fakes/cuda/fake_multicast.h"

namespace mscclc::cuda {

abi::Result FakeMulticast::MulticastGetGranularity(size_t* bytes, const abi::MulticastProperties*,
                                                   int) {
  *bytes = options().multicast_granule;
  return abi::kSuccess;
}

abi::Result FakeMulticast::MulticastCreate(abi::Handle* object,
                                           const abi::MulticastProperties* properties) {
  if (!options().multicast)
    return misuse("creates multicast that there is not", abi::kNotSupported);
  if (properties->flags != 0 || properties->devices < 2 || properties->size == 0 ||
      properties->size % options().multicast_granule != 0) {
    return misuse("creates a multicast object of wrong size", abi::kInvalidValue);
  }
  if ((properties->handle_types & abi::kFabric) != 0 && !(options().fabric && options().imex)) {
    return abi::kNotPermitted;
  }
  auto memory = std::make_shared<Physical>();
  memory->bytes = properties->size;
  memory->handle_types = static_cast<int>(properties->handle_types);
  memory->team.reset(new Team{.size = properties->devices, .devices = {}, .bindings = {}});
  *object = new_number();
  process().handles[*object] = {std::move(memory), 1};
  return abi::kSuccess;
}

abi::Result FakeMulticast::MulticastAddDevice(abi::Handle object, abi::Ordinal device) {
  const auto found = process().handles.find(object);
  if (found == process().handles.end() || found->second.memory->team == nullptr) {
    return misuse("adds a device to no multicast object", abi::kInvalidValue);
  }
  Team& team = *found->second.memory->team;
  if (team.devices.size() == team.size || !team.devices.insert(device).second) {
    return misuse("adds a device too many to a multicast object", abi::kInvalidValue);
  }
  return abi::kSuccess;
}

abi::Result FakeMulticast::MulticastBindMem(abi::Handle object, size_t offset, abi::Handle memory,
                                            size_t memory_offset, size_t bytes,
                                            unsigned long long flags) {
  const auto to = process().handles.find(object), from = process().handles.find(memory);
  if (to == process().handles.end() || to->second.memory->team == nullptr ||
      from == process().handles.end() || from->second.references == 0 || flags != 0) {
    return misuse("binds no memory, or to no multicast object", abi::kInvalidValue);
  }
  const Physical& multicast = *to->second.memory;
  Team& team = *multicast.team;
  const Physical& bound = *from->second.memory;
  const uint64_t granule = options().multicast_granule;
  if (team.devices.size() < team.size) {
    return misuse("binds memory before all devices are there (this would block)",
                  abi::kIllegalState);
  }
  if (offset % granule != 0 || memory_offset % granule != 0 || bytes % granule != 0 || bytes == 0) {
    return misuse("binds memory that is not aligned", abi::kInvalidValue);
  }
  if (offset > multicast.bytes || bytes > multicast.bytes - offset || memory_offset > bound.bytes ||
      bytes > bound.bytes - memory_offset) {
    return misuse("binds beyond the end", abi::kInvalidValue);
  }
  if (team.devices.count(bound.device) == 0) {
    return misuse("binds memory of a GPU that is not in the team", abi::kInvalidDevice);
  }
  if (multicast.handle_types != 0 && bound.handle_types == 0) {
    return misuse("binds memory that is not shareable", abi::kInvalidValue);
  }
  for (const auto& [at, binding] : team.bindings[bound.device]) {
    if (at < offset + bytes && offset < at + binding.bytes) {
      return misuse("binds where memory is bound", abi::kInvalidValue);
    }
  }
  team.bindings[bound.device][offset] = {bytes, from->second.memory, memory_offset};
  return abi::kSuccess;
}

abi::Result FakeMulticast::MulticastUnbind(abi::Handle object, abi::Ordinal device, size_t offset,
                                           size_t bytes) {
  const auto found = process().handles.find(object);
  if (found == process().handles.end() || found->second.memory->team == nullptr) {
    return misuse("unbinds from no multicast object", abi::kInvalidValue);
  }
  auto& bindings = found->second.memory->team->bindings[device];
  const auto binding = bindings.find(offset);
  if (binding == bindings.end() || binding->second.bytes != bytes) {
    return misuse("unbinds what was not bound so", abi::kInvalidValue);
  }
  bindings.erase(binding);
  return abi::kSuccess;
}

std::vector<int> FakeMulticast::multicast_bytes(abi::Address address) {
  const std::lock_guard lock(mutex());
  const auto mapping = fake::find_range(process().mappings, address, 1,
                                        [](const MappingEntry& entry) { return entry.bytes; });
  std::vector<int> bytes;
  if (mapping == process().mappings.end() || mapping->second.memory->team == nullptr) return bytes;
  const uint64_t offset = address - mapping->first;
  for (const auto& [device, bindings] : mapping->second.memory->team->bindings) {
    for (const auto& [at, binding] : bindings) {
      if (offset < at || offset - at >= binding.bytes) continue;
      bytes.push_back(*binding.memory->at(binding.offset + offset - at));
    }
  }
  return bytes;
}

}  // namespace mscclc::cuda
