#include "runtime/network/exposed_memory.h"

namespace mscclc {

const NamedMemory* NamedMemory::find(const RemotePlace& place, uint64_t bytes) {
  const auto* memory = dynamic_cast<const NamedMemory*>(place.region);
  const bool inside = memory != nullptr && place.offset <= memory->bytes() &&
                      bytes <= memory->bytes() - place.offset;
  return inside && memory->exposed() ? memory : nullptr;
}

std::optional<ExposedId> NamedMemory::at(const RemotePlace& place, uint64_t bytes) {
  const NamedMemory* const memory = find(place, bytes);
  return memory != nullptr ? memory->exposed() : std::nullopt;
}

ExposedId ExposedMemory::add(const std::shared_ptr<const void>& owner, uint8_t* data,
                             uint64_t bytes, MemoryPlace place, const uint8_t* staging) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.owner.expired(); });
  entries_[next_] = {owner, data, bytes, place, staging};
  return next_++;
}

ExposedMemory::Piece ExposedMemory::find(ExposedId id, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (id == 0 || id >= next_) return {};
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return {.state = Piece::State::gone};
  const auto& [owner, data, size, place, staging] = entry->second;
  if (offset > size || bytes > size - offset) return {};
  std::shared_ptr<const void> held = owner.lock();
  if (held == nullptr) return {.state = Piece::State::gone};
  return {Piece::State::here, std::move(held), data + offset, place,
          staging == nullptr ? nullptr : staging + offset};
}

}  // namespace mscclc
