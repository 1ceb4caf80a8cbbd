#include "runtime/host/exposed_memory.h"

namespace mscclc {

ExposedId ExposedMemory::add(const std::shared_ptr<SharedMapping>& mapping, uint8_t* data,
                             uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.mapping.expired(); });
  entries_[next_] = {mapping, data, bytes};
  return next_++;
}

ExposedMemory::Piece ExposedMemory::find(ExposedId id, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (id == 0 || id >= next_) return {};
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return {Piece::State::gone, nullptr, nullptr};
  const auto& [mapping, data, size] = entry->second;
  if (offset > size || bytes > size - offset) return {};
  std::shared_ptr<SharedMapping> held = mapping.lock();
  if (held == nullptr) return {Piece::State::gone, nullptr, nullptr};
  return {Piece::State::here, std::move(held), data + offset};
}

}  // namespace mscclc
