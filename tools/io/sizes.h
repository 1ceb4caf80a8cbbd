// Message sizes as the command line says them, in the manner of nccl-tests: K, M, G are powers of
// 1024.
//
//   64K          one size            1K:1M:4     1K, 4K … 1M (times 4)
//   1K:1M        1K, 2K … 1M         1K:9K:+2K   1K, 3K … 9K (plus 2K)
//   0,1,7,1M     these; items may be ranges
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace mscclc {

/// "4", "4K", "4KiB", "2G" in bytes; nothing if it is no size or does not fit in 64 bits.
std::optional<uint64_t> parse_bytes(std::string_view text);

/// Parses a list of sizes and ranges.
Result<std::vector<uint64_t>> parse_sizes(std::string_view text);

}  // namespace mscclc
