// What ranks send each other about a run: result and diagnostics as bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/core/runner/rank_runner.h"

namespace mscclc {

struct RankReport {
  RankResult result;
  std::vector<Diagnostic> diagnostics;
};

std::vector<uint8_t> encode(const RankReport& report);
/// False if the bytes are no report.
bool decode(std::span<const uint8_t> bytes, RankReport& report);

/// All ranks' results as one: the worst status, the slowest time, wrong elements together. Adds
/// diagnostics that `diagnostics` does not hold.
[[nodiscard]] RunResult merge(std::vector<RankReport> reports, const Contract& contract,
                              Diagnostics& diagnostics);

}  // namespace mscclc
