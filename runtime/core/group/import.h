// Maps memory of other ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/core/device/remote_regions.h"
#include "runtime/core/group/memory_pool.h"
#include "runtime/support/memory/handle.h"

namespace mscclc {

struct RankGroup;

/// What writes, and reads, a peer's memory.
enum class ReachedBy {
  blocks,  ///< blocks, or the proxy: it must be mapped
  lanes    ///< only the proxy
};

/// A block of a peer's pool, as it is reached from here.
struct PeerBlock {
  uint32_t peer;
  uint64_t number;
  ReachedBy reached;
  auto operator<=>(const PeerBlock&) const = default;
};

/// Device memory that the executables of a communicator share. Pools are held by what may grow.
struct GroupMemory {
  const std::shared_ptr<MemoryPool> shared = std::make_shared<MemoryPool>();  ///< peers map it
  const std::shared_ptr<MemoryPool> own = std::make_shared<MemoryPool>();  ///< for own blocks only
  /// What calls that follow one another have in turn, as nothing of it is accessed outside of the
  /// call: a plan's staging of one side or two, then scratch.
  std::weak_ptr<PoolBlock> in_turn[3];
  /// Memory of peers that this rank's blocks can name.
  const std::shared_ptr<RemoteRegions> regions = std::make_shared<RemoteRegions>();
  /// Blocks of peers that are mapped here, while they are in use.
  std::map<PeerBlock, std::weak_ptr<const Memory>> peer_blocks;
};

/// Maps a peer's memory, or makes it known to lanes: that is all where the link gives no access.
/// Errors name the peer. Ends when the communicator fails.
[[nodiscard]] std::unique_ptr<Memory> import_from(const RankGroup& group, uint32_t peer,
                                                  const MemoryHandle& handle,
                                                  Diagnostics& diagnostics,
                                                  ReachedBy reached = ReachedBy::blocks);
/// Maps `bytes` bytes of a peer's pool: its block, if that is not mapped yet. nullptr: reported
/// (bad-handle, or as import_from()).
[[nodiscard]] std::shared_ptr<Memory> import_piece(RankGroup& group, uint32_t peer,
                                                   const PieceHandle& piece, uint64_t bytes,
                                                   ReachedBy reached, Diagnostics& diagnostics);
/// Maps what other ranks have encoded; an empty handle is no memory. `peers` and `handles` by rank.
[[nodiscard]] bool import_all(const RankGroup& group,
                              const std::vector<std::vector<uint8_t>>& handles,
                              std::vector<std::unique_ptr<Memory>>& peers,
                              Diagnostics& diagnostics);

}  // namespace mscclc
