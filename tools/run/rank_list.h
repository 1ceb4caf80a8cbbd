// Files that are named with the ranks of the world that they run on: 'pair.json@2,3', as
// 'mscclc verify --together' takes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace mscclc {

struct FileOfRanks {
  std::string file;
  std::vector<uint32_t> ranks;  ///< empty: none are named
};

/// Splits at the last '@' if digits, commas and dots follow it; all else is the file's name.
/// Ranks are numbers and ranges without their end (0..4), separated by commas.
Result<FileOfRanks> split_ranks(std::string_view text);

}  // namespace mscclc
