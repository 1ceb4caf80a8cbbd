#include "runtime/core/group/memory_pool.h"

#include <algorithm>

#include "runtime/support/bytes.h"

namespace mscclc {
namespace {

uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

bool PoolPiece::encode(Device& device, std::vector<uint8_t>& to, Diagnostics& diagnostics) const {
  MemoryHandle& handle = block->handle;
  if (handle.offers.empty()) {
    auto made = device.export_memory(block->memory->data(), block->memory->bytes(), diagnostics);
    if (!made) return false;
    handle = *std::move(made);
  }
  ByteWriter(to).number(block->number).number(offset);
  mscclc::encode(handle, to);
  return true;
}

std::optional<PieceHandle> decode_piece(std::span<const uint8_t>& from, Diagnostics& diagnostics) {
  ByteReader reader(from);
  PieceHandle piece;
  piece.block = reader.number<uint64_t>();
  piece.offset = reader.number<uint64_t>();
  if (!reader.good()) {
    diagnostics.error("bad-message", {}, "a peer's message is cut off");
    return std::nullopt;
  }
  from = reader.rest();
  auto handle = decode_handle(from, diagnostics);
  if (!handle) return std::nullopt;
  piece.handle = *std::move(handle);
  return piece;
}

std::shared_ptr<PoolBlock> MemoryPool::add(Device& device, uint64_t bytes, const std::string& what,
                                           PoolKind kind, Diagnostics& diagnostics) {
  std::shared_ptr<const Memory> memory = kind == PoolKind::visible
                                             ? device.allocate_visible(bytes, what, diagnostics)
                                             : device.allocate(bytes, what, diagnostics);
  if (memory == nullptr) return nullptr;
  auto block = std::make_shared<PoolBlock>();
  block->number = next_++;
  block->memory = std::move(memory);
  block->kind = kind;
  std::erase_if(blocks_, [](const auto& b) { return b.expired(); });
  blocks_.push_back(block);
  return block;
}

// The first block with room: those that are full are few, as large pieces have their own.
PoolPiece MemoryPool::take(Device& device, uint64_t bytes, const std::string& what,
                           Diagnostics& diagnostics, PoolKind kind) {
  bytes = std::max<uint64_t>(bytes, 1);
  std::shared_ptr<PoolBlock> found;
  for (const std::weak_ptr<PoolBlock>& weak : blocks_) {
    const auto block = weak.lock();
    if (block == nullptr || block->kind != kind) continue;
    if (block->memory->bytes() - block->used < bytes) continue;
    found = block;
    break;
  }
  if (found == nullptr) found = add(device, round_up(bytes, kStep), what, kind, diagnostics);
  if (found == nullptr) return {};
  const uint64_t offset = found->used;
  found->used = std::min(round_up(offset + bytes, kAlign), found->memory->bytes());
  return {std::move(found), offset, bytes};
}

PoolPiece MemoryPool::take_alone(Device& device, uint64_t bytes, const std::string& what,
                                 Diagnostics& diagnostics) {
  bytes = std::max<uint64_t>(bytes, 1);
  auto block = add(device, bytes, what, PoolKind::device, diagnostics);
  if (block == nullptr) return {};
  block->used = block->memory->bytes();
  return {std::move(block), 0, bytes};
}

void MemoryPool::close_descriptors() {
  const auto keeps_one = [](const Offer& offer) {
    return offer.kind == HandleKind::host_fd || offer.kind == HandleKind::cuda_fd ||
           offer.kind == HandleKind::cuda_ipc;
  };
  for (const std::weak_ptr<PoolBlock>& weak : blocks_) {
    const auto block = weak.lock();
    if (block != nullptr && std::ranges::any_of(block->handle.offers, keeps_one)) {
      block->handle = {};
    }
  }
}

uint64_t MemoryPool::bytes() const {
  uint64_t all = 0;
  for (const std::weak_ptr<PoolBlock>& weak : blocks_) {
    if (const auto block = weak.lock()) all += block->memory->bytes();
  }
  return all;
}

}  // namespace mscclc
