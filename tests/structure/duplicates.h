// Text that stands in two places: runs of equal tokens, comments, preprocessor lines and imports
// left out.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace mscclc::structure {

/// So many equal tokens, some ten lines, are no accident.
inline constexpr size_t kDuplicateTokens = 60;

/// Two files that have a run of equal tokens in common, or two places of one file.
struct DuplicatePair {
  /// Of the longest run.
  struct Place {
    std::string path;
    size_t line = 0;
  };
  Place first, second;
  size_t tokens = 0;  ///< of the longest run
};

/// Those with runs of at least kDuplicateTokens, the longest first. `sources`: text by path, of
/// C++, CUDA and Python.
std::vector<DuplicatePair> duplicate_pairs(const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
