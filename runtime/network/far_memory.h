// Memory of ranks of other nodes: what its owner says of it, and what stands for it here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/network/exposed_memory.h"

namespace mscclc {

/// What the owner of a piece calls it in orders of lanes, and on which node it is: the bytes of an
/// offer of kind host_lane.
struct FarPiece {
  ExposedId id = 0;
  std::optional<DeviceKey> device_key = {};
  MemoryPlace place = MemoryPlace::host;
  std::string node = {};
};
void encode(const FarPiece& piece, std::vector<uint8_t>& to);
/// nullopt: it is not one.
[[nodiscard]] std::optional<FarPiece> decode_far_piece(std::span<const uint8_t> bytes);

/// Memory of a peer that is not mapped here: addresses that nothing else has and that cannot be
/// accessed, so that blocks can name what the proxy is to write.
class FarWindow final : public NamedMemory {
 public:
  /// nullptr: reported (out-of-memory).
  [[nodiscard]] static std::unique_ptr<FarWindow> reserve(uint64_t bytes, const FarPiece& piece,
                                                          Diagnostics& diagnostics);
  ~FarWindow() override;

 private:
  FarWindow(uint8_t* data, uint64_t bytes, const FarPiece& piece);
};

}  // namespace mscclc
