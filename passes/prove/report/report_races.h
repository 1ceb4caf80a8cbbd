// Findings about two accesses to the same bytes: races, and slots of packets.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Two accesses that nothing orders, packets that are put where others may still be, or a slot that
/// a port sends and that holds no packets of the call.
void report_races(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
