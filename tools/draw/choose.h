// Which ranks get a band, and which blocks share a column, so that a picture fits a screen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "tools/draw/layout.h"
#include "tools/draw/symmetry.h"

namespace mscclc::draw {

/// Blocks of a rank that are drawn as one: the first of them.
struct Folded {
  std::vector<uint32_t> blocks;  ///< in Steps::blocks
  bool other_peers = false;      ///< each has other peers
};

struct ChosenRank {
  uint32_t rank = 0;
  std::vector<Folded> columns;
  std::vector<uint32_t> stands_for;  ///< ranks that do the same, if not all are drawn
};

struct Choice {
  std::vector<ChosenRank> bands;
  PeerNames names;
};

/// More columns are no picture for a screen.
inline constexpr size_t kMaxColumns = 16;
/// The same where ranks are folded: the others take room at both sides.
inline constexpr size_t kMaxFoldedColumns = 13;
/// More ranks are folded.
inline constexpr size_t kMaxBands = 8;

/// Fails if the options name what is not there.
Result<Choice> choose(const Program& program, const Steps& steps, const DrawOptions& options);

/// "rank r writes to r + 1": how data goes between ranks that all do the same.
std::string traffic(const Program& program, const PeerNames& names, uint32_t rank);

}  // namespace mscclc::draw
