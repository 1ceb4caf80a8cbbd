// Findings in words: what is violated, on which chunk and ranks, by which ops, and what is missing.
#pragma once

#include "ir/diagnostic.h"
#include "passes/prove/finding.h"
#include "passes/prove/system.h"

namespace mscclc::proof {

void report(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
