// Registered buffers that overlap on a rank, and not alike on all. A pointer there may mean either,
// and a rank takes the one that was registered last: another rank, where they do not overlap so,
// may take the other, and then their calls differ. What was registered twice is the cause.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace mscclc {

/// Bytes of a new buffer that lie in one that its rank has registered before.
struct BufferOverlap {
  uint64_t other;       ///< the number of that one
  uint64_t from;        ///< first byte, in the new buffer ...
  uint64_t other_from;  ///< ... and in the other one
  uint64_t bytes;
  bool operator==(const BufferOverlap&) const = default;
};

/// nullopt: they have no byte in common.
std::optional<BufferOverlap> find_overlap(std::span<const uint8_t> buffer, uint64_t other,
                                          std::span<const uint8_t> other_buffer);

void encode(std::span<const BufferOverlap> overlaps, std::vector<uint8_t>& to);
/// Takes them from the front; false if they are not such.
[[nodiscard]] bool decode(std::span<const uint8_t>& from, std::vector<BufferOverlap>& overlaps);

/// Thread safety: from any thread.
class BufferOverlaps {
 public:
  struct Spot {
    uint64_t buffer, offset;
  };
  /// A byte that lies in two buffers of a rank.
  struct Both {
    uint64_t offset;  ///< in the buffer that was asked for
    Spot other;
  };

  /// Of the new buffer `number`, by rank. Those that are alike on all ranks do no harm.
  void add(uint64_t number, const std::vector<std::vector<BufferOverlap>>& by_rank);
  /// A buffer is not registered any more.
  void remove(uint64_t number);
  /// The first of `bytes` bytes of a rank's buffer that lies in another one, too, and not so on all
  /// ranks. nullopt: none does.
  std::optional<Both> find(uint32_t rank, uint64_t buffer, uint64_t offset, uint64_t bytes) const;

 private:
  struct OnRank {
    uint32_t rank;
    BufferOverlap overlap;
  };
  mutable std::mutex mutex_;
  std::multimap<uint64_t, OnRank> overlaps_;  ///< by the new buffer
};

}  // namespace mscclc
