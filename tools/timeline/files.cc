#include "tools/timeline/files.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/io/files.h"
#include "tools/timeline/chrome.h"
#include "tools/timeline/page.h"

namespace mscclc::timeline {

void add_timeline_options(CommandLine& line, CLI::App& app, TimelineOptions& options,
                          const std::string& whose) {
  line.writes(
      app.add_option(
             "--trace", options.trace,
             "write a timeline in Chrome's trace event format, for ui.perfetto.dev: " + whose)
          ->type_name("FILE"));
  line.writes(app.add_option("--html", options.html, "write a timeline as a page: " + whose)
                  ->type_name("FILE"));
}

void add_machine_option(CLI::App& app, std::string& machine) {
  app.add_option("--machine", machine,
                 "a built-in machine, such as 4xH200, or a machine file (default: the smallest "
                 "built-in one that can run the plan)")
      ->type_name("MACHINE");
}

namespace {

/// Without links and detours, as far as it is there.
std::filesystem::path path_of(const std::string& file) {
  std::error_code none;
  return std::filesystem::weakly_canonical(file, none);
}

}  // namespace

Result<void> could_write_timeline(const TimelineOptions& options) {
  if (options.asked() && path_of(options.trace) == path_of(options.html)) {
    return Error{fmt::format("--trace and --html both name '{}'", options.html)};
  }
  for (const std::string& file : {options.trace, options.html}) {
    if (file.empty()) continue;
    if (auto fine = needs_file("a timeline", file); !fine) return fine;
    if (auto could = could_write(file); !could) return could;
  }
  return {};
}

Result<void> write_timeline(const TimelineOptions& options, const CallFacts& facts,
                            const std::vector<Trace>& traces) {
  Result<void> written;
  if (!options.trace.empty()) {
    written = write_file(options.trace, chrome_trace(facts, traces.front()));
  }
  if (written && !options.html.empty()) {
    written = write_file(options.html, timeline_page(facts, traces));
  }
  return written;
}

}  // namespace mscclc::timeline
