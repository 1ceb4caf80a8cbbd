// What passes have taken out of the thread blocks that a finding is about: perhaps what is missing.
#pragma once

#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Notes at the ops that passes have removed from the blocks of the two events, the first few.
std::vector<Note> removed_notes(const System& system, const Finding& finding);

}  // namespace mscclc::proof
