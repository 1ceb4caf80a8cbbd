// A timeline in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open.
#pragma once

#include <string>

#include "tools/timeline/trace.h"

namespace mscclc::timeline {

/// A process a rank, a track a thread block, a slice a step, and an arrow for each signal or packet
/// that was waited for. The critical path is a track of its own.
std::string chrome_trace(const CallFacts& facts, const Trace& trace);

}  // namespace mscclc::timeline
