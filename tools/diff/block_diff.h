// Two blocks side by side: which ops stand in one alone.
#pragma once

#include <cstdint>
#include <vector>

namespace mscclc::diff {

/// An op of either side, or of both.
struct Edit {
  enum Kind : uint8_t { both, removed, added } kind = both;
  uint32_t a = 0, b = 0;  ///< positions
};

/// The least number of ops removed and added; of long blocks that differ much, not always the
/// least.
std::vector<Edit> edits(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b);

/// How many ops two blocks share in whatever order: the more, the more alike they are.
uint32_t shared(std::vector<uint64_t> a, std::vector<uint64_t> b);

}  // namespace mscclc::diff
