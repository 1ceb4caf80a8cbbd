// A timeline as one HTML page that needs nothing else: ranks and blocks against time, with zoom,
// tooltips and the critical path.
#pragma once

#include <string>
#include <vector>

#include "tools/timeline/trace.h"

namespace mscclc::timeline {

/// One view for each trace, side by side: steps with the same number belong together.
std::string timeline_page(const CallFacts& facts, const std::vector<Trace>& traces);

}  // namespace mscclc::timeline
