// Flags by which a plan and other work of its rank, a GEMM say, go on piece by piece: the caller
// gives an array of words, each for a region of the input or of the output
// (docs/design/overlap.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/source.h"

namespace mscclc {

/// Who sees what a flag publishes: this GPU, or all of the machine (copy engines, the host).
enum class FlagScope : uint8_t { gpu, system };
std::string_view name(FlagScope scope);
std::optional<FlagScope> find_flag_scope(std::string_view text);

/// In which order the other side raises flags, or reads what they are for, as its caller declares:
/// none that is known; from 0 on; from the rank's own part on, around; the own part last.
enum class TileOrder : uint8_t { any, rising, own_first, own_last };
std::string_view name(TileOrder order);
std::optional<TileOrder> find_tile_order(std::string_view text);

/// `external flags NAME[count] of: input`: flag c is for the c-th of `count` equal ranges of
/// chunks.
struct FlagArray {
  static constexpr uint32_t kNoArray = 0xffffffffu;

  std::string name;
  uint32_t count = 1;
  /// false: the other side raises them when it has written the input, and the plan awaits them;
  /// true: the plan notifies, and the other side reads the output.
  bool of_output = false;
  uint32_t raises = 1;  ///< how often each is raised in a call
  uint32_t bits = 32;   ///< of a word: 32 or 64
  FlagScope scope = FlagScope::gpu;
  TileOrder tiles = TileOrder::any;  ///< nothing depends on it but a warning
  /// In Program::flags: the other side may wait for all flags of that array before it raises one of
  /// these. Else it waits, before it raises flag c, at most for flags of the output below c.
  uint32_t after = kNoArray;
  Span declared = {};
};

}  // namespace mscclc
