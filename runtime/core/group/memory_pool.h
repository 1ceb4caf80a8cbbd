// Device memory of a communicator, in blocks that all it has loaded takes pieces of. A driver gives
// memory in granules of 2 MiB, and what peers map is a mapping on each of them: of a block it is
// one, however many pieces it has.
//
// A piece is never given out twice: peers that have mapped it may be in a call that still uses it,
// and a new piece holds zeros. A block goes when none of its pieces is held any more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/precondition.h"
#include "runtime/api/device.h"
#include "runtime/support/memory/handle.h"

namespace mscclc {

/// A part of other memory, which it holds.
class MemoryPart final : public Memory {
 public:
  /// REQUIRES: the part lies within `whole`.
  MemoryPart(std::shared_ptr<const Memory> whole, uint64_t offset, uint64_t bytes)
      : whole_(std::move(whole)) {
    precondition(offset <= whole_->bytes() && bytes <= whole_->bytes() - offset);
    data_ = whole_->data() + offset;
    bytes_ = bytes;
  }

 private:
  const std::shared_ptr<const Memory> whole_;
};

enum class PoolKind : uint8_t {
  device,  ///< Device::allocate()
  visible  ///< Device::allocate_visible()
};

/// One allocation. Its number is its own among those of a pool.
struct PoolBlock {
  uint64_t number = 0;
  std::shared_ptr<const Memory> memory;
  PoolKind kind = PoolKind::device;
  uint64_t used = 0;         ///< bytes that have been given out
  MemoryHandle handle = {};  ///< for peers; no offers: none has asked
};

/// What a rank's peers learn of a piece.
struct PieceHandle {
  uint64_t block = 0;   ///< its number
  uint64_t offset = 0;  ///< in the block
  MemoryHandle handle;  ///< of the whole block
};

/// Some bytes of a block, which they hold.
struct PoolPiece {
  std::shared_ptr<PoolBlock> block;
  uint64_t offset = 0, bytes = 0;

  explicit operator bool() const { return block != nullptr; }
  /// The piece as memory, which holds the block.
  std::shared_ptr<Memory> memory() const {
    const std::shared_ptr<const Memory> whole(block, block->memory.get());
    return std::make_shared<MemoryPart>(whole, offset, bytes);
  }
  /// Appends what decode_piece() takes. False: reported.
  [[nodiscard]] bool encode(Device& device, std::vector<uint8_t>& to,
                            Diagnostics& diagnostics) const;
};

/// Takes a piece's handle from the front. Errors: those of decode_handle(), bad-message.
[[nodiscard]] std::optional<PieceHandle> decode_piece(std::span<const uint8_t>& from,
                                                      Diagnostics& diagnostics);

/// Thread safety: one thread at a time; pieces may be given back from any.
class MemoryPool {
 public:
  /// Blocks are multiples of it: what drivers round up to.
  static constexpr uint64_t kStep = uint64_t{2} << 20;
  /// Pieces begin at multiples of it in their blocks: lines of packets are whole.
  static constexpr uint64_t kAlign = 256;

  /// A piece of zeros, at least a byte. Empty: reported, with `what`.
  [[nodiscard]] PoolPiece take(Device& device, uint64_t bytes, const std::string& what,
                               Diagnostics& diagnostics, PoolKind kind = PoolKind::device);
  /// The same at the begin of a block of its own.
  [[nodiscard]] PoolPiece take_alone(Device& device, uint64_t bytes, const std::string& what,
                                     Diagnostics& diagnostics);
  /// All peers have mapped what they learned of: descriptors that are kept for them can go. A block
  /// that is offered later gets a new handle.
  void close_descriptors();
  /// Bytes of all blocks that are still there.
  uint64_t bytes() const;

 private:
  std::shared_ptr<PoolBlock> add(Device& device, uint64_t bytes, const std::string& what,
                                 PoolKind kind, Diagnostics& diagnostics);

  std::vector<std::weak_ptr<PoolBlock>> blocks_;
  uint64_t next_ = 0;
};

}  // namespace mscclc
