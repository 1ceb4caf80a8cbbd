// What each rank sends all others of the plan that it loads: what they must load alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/bytes.h"

namespace mscclc {

struct LoadMessage {
  std::string call;  ///< in words; cut off after a few hundred bytes
  std::string hash;  ///< of the plan: as long on all ranks
  uint64_t max_bytes = 0;
  uint32_t element = 0;  ///< bytes
  bool zero_copy = false, in_turn = false, in_order = false;
  std::span<const uint8_t> board = {};  ///< what only that rank says: the ticket of its CallBoard

  /// Is all alike that must be?
  bool is_like(const LoadMessage& other) const;
  /// Appends it to a message.
  void encode(std::vector<uint8_t>& message) const;
};

/// Takes what a rank loads from the front of its message, which must outlive `loaded`.
/// `hash_bytes`: of this rank's. Error: bad-message.
[[nodiscard]] bool decode(ByteReader& message, size_t hash_bytes, LoadMessage& loaded,
                          Diagnostics& diagnostics);

/// Do all ranks load the same? All compare the same messages, by rank: they all go on, or none
/// does, without another exchange. Errors: bad-message, call-differs, plan-differs, options-differ.
[[nodiscard]] bool same_loads(const std::vector<std::vector<uint8_t>>& messages, size_t hash_bytes,
                              Diagnostics& diagnostics);

}  // namespace mscclc
