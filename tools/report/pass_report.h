// Tables about the passes that ran: what each cost (--time-passes), what each did (--stats).
#pragma once

#include <span>
#include <string>

#include "passes/registry.h"

namespace mscclc {

/// CPU and wall time of each pass, and its share; the longest first.
std::string time_table(std::span<const PassRecord> records);
/// Ops before and after each pass, and what it has counted.
std::string stats_table(std::span<const PassRecord> records);

}  // namespace mscclc
