#include "tools/timeline/files.h"

#include "tools/base/files.h"
#include "tools/timeline/chrome.h"
#include "tools/timeline/page.h"

namespace mscclc::timeline {

void add_timeline_options(CLI::App& app, TimelineOptions& options, const std::string& whose) {
  app.add_option(
         "--trace", options.trace,
         "write the timeline of " + whose + " in Chrome's trace event format, for ui.perfetto.dev")
      ->type_name("FILE");
  app.add_option("--html", options.html, "write the timeline of " + whose + " as a page")
      ->type_name("FILE");
}

std::string write_timeline(const TimelineOptions& options, const CallFacts& facts,
                           const std::vector<Trace>& traces) {
  std::string error;
  if (!options.trace.empty() &&
      !write_file(options.trace, chrome_trace(facts, traces.front()), error)) {
    return error;
  }
  if (!options.html.empty() && !write_file(options.html, timeline_page(facts, traces), error)) {
    return error;
  }
  return "";
}

}  // namespace mscclc::timeline
