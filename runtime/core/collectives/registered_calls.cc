#include "runtime/core/collectives/registered_calls.h"

#include <ranges>
#include <utility>

namespace mscclc {

uint64_t RegisteredCalls::add(const void* address, uint64_t bytes,
                              std::unique_ptr<RegisteredBuffer> buffer) {
  buffers_[next_] = {static_cast<const uint8_t*>(address), bytes, std::move(buffer)};
  return next_++;
}

const RegisteredBuffer* RegisteredCalls::buffer(uint64_t number) const {
  const auto found = buffers_.find(number);
  return found == buffers_.end() ? nullptr : found->second.registered.get();
}

bool RegisteredCalls::remove(uint64_t number) {
  if (buffers_.erase(number) == 0) return false;
  // A call's key names the last buffer that its first byte lies in; it may be bound to another one,
  // which holds all of it. All ranks forget the same.
  calls_.clear();
  by_age_.clear();
  return true;
}

std::optional<RegisteredCalls::BufferSpot> RegisteredCalls::find(const void* at) const {
  const auto* byte = static_cast<const uint8_t*>(at);
  for (const auto& [number, buffer] : std::views::reverse(buffers_)) {
    if (byte < buffer.address || byte >= buffer.address + buffer.bytes) continue;
    return BufferSpot{number, static_cast<uint64_t>(byte - buffer.address)};
  }
  return std::nullopt;
}

BoundCall RegisteredCalls::call(const Key& key) const {
  const auto found = calls_.find(key);
  return found == calls_.end() ? BoundCall() : found->second;
}

void RegisteredCalls::keep(const Key& key, BoundCall call) {
  if (calls_.size() == kMaxCalls) {
    calls_.erase(by_age_.front());
    by_age_.pop_front();
  }
  calls_[key] = std::move(call);
  by_age_.push_back(key);
}

}  // namespace mscclc
