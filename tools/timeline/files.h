// --trace and --html: where a command writes the timeline of a call.
#pragma once

#include <string>
#include <vector>

#include "ir/support/result.h"
#include "tools/io/command_line.h"
#include "tools/timeline/trace.h"

namespace mscclc::timeline {

struct TimelineOptions {
  std::string trace, html;  ///< files; "": not asked for
  bool asked() const { return !trace.empty() || !html.empty(); }
};

/// Declares --trace and --html; `whose` says of which call.
void add_timeline_options(CommandLine& line, CLI::App& app, TimelineOptions& options,
                          const std::string& whose);

/// Declares --machine.
void add_machine_option(CLI::App& app, std::string& machine);

/// An error if what was asked for cannot be written: before the work.
Result<void> could_write_timeline(const TimelineOptions& options);
/// Writes what was asked for: the page shows all traces side by side, the file of events the first.
Result<void> write_timeline(const TimelineOptions& options, const CallFacts& facts,
                            const std::vector<Trace>& traces);

}  // namespace mscclc::timeline
