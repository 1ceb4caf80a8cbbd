// Where the caller's buffers of all ranks lie during a call. Buffers that only their own rank's ops
// touch are used where they are. Of those that other ranks' ops address, registered ones are mapped
// in place; for all others the executable has *staging* memory, and calls copy in and out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/lower.h"
#include "runtime/group/group.h"

namespace mscclc {

/// What peers touch: touched[rank][side] (kInput, kOutput).
class PeerAccess {
 public:
  explicit PeerAccess(const Program& program);
  bool any() const { return any_; }
  bool touches(uint32_t rank, uint32_t side) const { return touched_[rank * 2 + side]; }

 private:
  std::vector<bool> touched_;
  bool any_ = false;
};

/// Where one buffer of a rank lies, as all ranks are told.
struct BufferPlace {
  enum class Kind : uint8_t { own, registered, staging };
  Kind kind = Kind::own;  ///< own: only its rank knows where
  uint64_t buffer = 0;    ///< registered: which; staging: that of which side
  uint64_t offset = 0;
};

/// Both buffers of a rank.
struct RankPlaces {
  BufferPlace side[2];
};
void encode(const RankPlaces& places, std::vector<uint8_t>& to);
/// Takes places from the front; false if they are not such.
[[nodiscard]] bool decode(std::span<const uint8_t>& from, RankPlaces& places);

}  // namespace mscclc
