// Where the caller's buffers of all ranks lie during a call. Buffers that only their own rank's ops
// touch are used where they are. Of those that other ranks' ops address, registered ones are mapped
// in place; for all others the executable has *staging* memory, and calls copy in and out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/lower.h"
#include "runtime/core/group/group.h"

namespace mscclc {

/// Which of the caller's buffers (kInput, kOutput) a plan's ops address at other ranks.
class PeerAccess {
 public:
  explicit PeerAccess(const Program& program);
  uint32_t ranks() const { return static_cast<uint32_t>(together_.size()); }
  bool any() const { return any_; }
  bool touches(uint32_t rank, uint32_t side) const { return touched_[rank * 2 + side]; }
  /// True if input and output of a rank always lie one in the other.
  bool together(uint32_t rank) const { return together_[rank]; }
  /// True if a call that is not zero copy needs staging for this buffer.
  bool stages(uint32_t rank, uint32_t side) const {
    return touches(rank, side) || (together(rank) && touches(rank, 1 - side)) ||
           (side == kOutput && apart_[rank]);
  }

 private:
  void keep_alike(const Contract& contract);

  std::vector<bool> touched_;   ///< [rank][side]
  std::vector<bool> together_;  ///< by rank
  /// By rank: in place its buffers come to lie apart, as staging makes those of others.
  std::vector<bool> apart_;
  bool any_ = false;
};

/// Where one buffer of a rank lies, as all ranks learn it.
struct BufferPlace {
  enum class Kind : uint8_t { own, registered, staging };
  Kind kind = Kind::own;  ///< own: only its rank knows where
  uint64_t buffer = 0;    ///< registered: which; staging: that of which side
  uint64_t offset = 0;
  bool operator==(const BufferPlace&) const = default;
};

/// Both buffers of a rank.
struct RankPlaces {
  BufferPlace side[2];
};
void encode(const RankPlaces& places, std::vector<uint8_t>& to);
/// Takes places from the front; false if they are not such.
[[nodiscard]] bool decode(std::span<const uint8_t>& from, RankPlaces& places);

}  // namespace mscclc
