// What a rank sends to a peer so that the peer can map a piece of its memory: a list of offers, of
// which the importer takes the first kind that works there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/memory/range.h"

namespace mscclc {

/// Ways to map another process's memory, best first.
enum class HandleKind : uint8_t {
  same_process,  ///< a ticket issued by this process
  host_fd,       ///< host shared memory (memfd), its descriptor fetched over a unix socket
  cuda_fd,       ///< CUDA VMM allocation, its POSIX descriptor fetched over a unix socket
  cuda_fabric,   ///< CUDA VMM allocation, fabric handle
  cuda_ipc,      ///< legacy cudaIpcMemHandle_t
  host_lane,     ///< what lanes call it, and on which node it is: nothing is mapped
};
std::string_view name(HandleKind kind);

struct Offer {
  static constexpr uint64_t kMaxBytes = 256;
  HandleKind kind;
  std::vector<uint8_t> bytes;  ///< what the kind needs
};

/// `bytes` bytes that lie `offset` bytes into an allocation of `allocation` bytes.
struct MemoryHandle {
  static constexpr uint64_t kMaxOffers = 8;
  uint64_t bytes = 0, offset = 0, allocation = 0;
  MemoryRange range() const { return {offset, bytes}; }
  std::vector<Offer> offers;
  /// With the exporter: what the offers refer to (descriptors, references). They are valid while a
  /// copy of it lives: keep it until all peers have imported. Not part of the wire form.
  std::shared_ptr<const void> keep = {};
};

/// Appends the handle's wire form. REQUIRES: at most kMaxOffers offers of at most kMaxBytes.
void encode(const MemoryHandle& handle, std::vector<uint8_t>& to);
/// Takes a handle from the front of `from`. Errors (bad-handle): too short, a length out of bounds,
/// an unknown kind, a piece outside its allocation.
[[nodiscard]] std::optional<MemoryHandle> decode_handle(std::span<const uint8_t>& from,
                                                        Diagnostics& diagnostics);

}  // namespace mscclc
