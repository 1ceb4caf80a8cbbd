// What goes over a lane of messages (runtime/devices/host/message_lane.cc), as a peer that means
// harm writes it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace mscclc::testing {

/// The head of an order; a put is followed by its bytes.
struct LaneOrder {
  static constexpr uint64_t kPut = 0, kSignal = 1, kFlush = 2;
  uint64_t what = 0, memory = 0, offset = 0;
  uint64_t value = 0;  ///< put: bytes; signal: the count; flush: its number
};

/// Memory that was freed long ago, memory that a peer may write, and memory that was freed lately
/// have these numbers. There is no other.
inline constexpr uint64_t kForgotten = 1, kExposed = 2, kFreed = 3;
/// Little, so that the end of it is hit.
inline constexpr uint64_t kExposedBytes = 24, kFreedBytes = 40;

/// What the far end says last: it has gone in good order.
inline constexpr uint64_t kGone = 0;

/// Appends a number, or an order, as it lies in memory.
template <class T>
void append(std::vector<uint8_t>& bytes, const T& value) {
  const auto* data = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

/// Takes it from the front of `bytes`. false: they are too few.
template <class T>
bool take(std::span<const uint8_t>& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return true;
}

}  // namespace mscclc::testing
