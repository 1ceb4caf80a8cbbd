// Findings about two accesses to the same bytes: races, and slots of packets.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Two accesses that nothing orders.
void report_race(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// Packets are put where others may still be.
void report_slot_twice(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// A port sends a slot that holds no packets of the call.
void report_no_packets(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
