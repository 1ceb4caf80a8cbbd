// What an object is asked to be: checked for the number of ranks, and as values to compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/overlap.h"
#include "runtime/choice/overlap/kinds.h"

namespace mscclc::overlap {

/// Of a matrix, and of what GEMMs need besides.
inline constexpr uint64_t kMaxBytes = uint64_t{1} << 46;
/// What memory of calls begins at multiples of, in bytes; and parts of a workspace, as cuBLASLt
/// wants.
inline constexpr uint64_t kAlignment = 16, kPart = 256;
/// B for one gathered A.
inline constexpr size_t kMaxWeights = 64;

/// Bytes of a rank's message, as plans count them: of what is gathered or exchanged [m, k], or of
/// the partial sums [m, n].
uint64_t message_bytes(const OverlapConfig& config);
/// Elements of a row of that.
uint64_t row_elements(const OverlapConfig& config);
Dtype message_dtype(const OverlapConfig& config);

/// Reports what is wrong with a config or a run (bad-call); false.
bool refuse_overlap(const OverlapConfig& config, const std::string& why, Diagnostics& diagnostics);

/// False: reported (bad-call), with what is required and what was given.
[[nodiscard]] bool check_config(const OverlapConfig& config, uint32_t ranks,
                                Diagnostics& diagnostics);

/// All that must be the same on all ranks: names and values.
using NamedValues = std::vector<std::pair<std::string, std::string>>;
NamedValues values_of(const OverlapConfig& config);

}  // namespace mscclc::overlap
