#include "runtime/core/group/import.h"

#include <fmt/format.h>

#include "runtime/core/group/group.h"

namespace mscclc {

std::unique_ptr<Memory> import_from(const RankGroup& group, uint32_t peer,
                                    const MemoryHandle& handle, Diagnostics& diagnostics,
                                    ReachedBy reached) {
  Diagnostics own;
  Device& device = *group.device;
  device.set_end_of_waits([failure = group.failure] { return failure->happened(); });
  const bool maps = reached == ReachedBy::blocks && group.neighbours.links[peer].access;
  auto memory = maps ? device.import_memory(handle, own) : device.reach_memory(handle, own);
  device.set_end_of_waits({});
  for (Diagnostic d : own.all()) {
    if (d.severity == Severity::error)
      d.message = fmt::format("memory of rank {}: {}", peer, d.message);
    diagnostics.add(std::move(d));
  }
  return group.memory.regions->add(peer, std::move(memory));
}

std::shared_ptr<Memory> import_piece(RankGroup& group, uint32_t peer, const PieceHandle& piece,
                                     uint64_t bytes, ReachedBy reached, Diagnostics& diagnostics) {
  const uint64_t there = piece.handle.bytes;
  if (piece.offset > there || bytes > there - piece.offset) {
    diagnostics.error("bad-handle", {},
                      fmt::format("rank {} shares {} bytes, of which {} from byte {} are asked for",
                                  peer, there, bytes, piece.offset));
    return nullptr;
  }
  std::erase_if(group.memory.peer_blocks, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Memory>& known = group.memory.peer_blocks[{peer, piece.block, reached}];
  std::shared_ptr<const Memory> block = known.lock();
  if (block == nullptr) {
    block = import_from(group, peer, piece.handle, diagnostics, reached);
    if (block == nullptr) return nullptr;
    known = block;
  } else if (block->bytes() != there) {
    diagnostics.error("bad-handle", {},
                      fmt::format("rank {} shares {} bytes; its block {} had {}", peer, there,
                                  piece.block, block->bytes()));
    return nullptr;
  }
  return std::make_shared<MemoryPart>(std::move(block), piece.offset, bytes);
}

bool import_all(const RankGroup& group, const std::vector<std::vector<uint8_t>>& handles,
                std::vector<std::unique_ptr<Memory>>& peers, Diagnostics& diagnostics) {
  peers.resize(handles.size());
  for (uint32_t r = 0; r < handles.size(); ++r) {
    if (r == group.rank() || handles[r].empty()) continue;
    std::span<const uint8_t> bytes = handles[r];
    const auto handle = decode_handle(bytes, diagnostics);
    if (!handle) return false;
    if (handle->bytes == 0) continue;
    peers[r] = import_from(group, r, *handle, diagnostics);
    if (peers[r] == nullptr) return false;
  }
  return true;
}

}  // namespace mscclc
