// mscclc report: joins the files that ranks write when their communicator fails, and says which
// ranks had launched fewer calls; or those of all their calls, and says which rank came late.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "ir/diagnostics/printable.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/report/call_report.h"
#include "tools/report/flight_report.h"

namespace mscclc {
namespace {

constexpr const char* kReportExamples = R"(  mscclc report /tmp/mscclc-*.json
  mscclc report trace-*.json --trace calls.json)";

struct ReportOptions {
  std::vector<std::string> files;
  std::string trace;  ///< a file to write; "": none
};

int report_traces(const ReportOptions& options, const std::vector<RankCalls>& calls,
                  Diagnostics& diagnostics) {
  const auto report = report_calls(calls, diagnostics);
  print_diagnostics(diagnostics, Sources{}, "text");
  if (!report) return kWrongProgram;
  put(*report);
  if (options.trace.empty()) return kFine;
  return Input::code_of(write_file(options.trace, chrome_calls(calls)));
}

int run_report(const ReportOptions& options) {
  if (const auto fine = needs_file("a timeline", options.trace); !fine) {
    return Input::usage(fine.error());
  }
  // '--trace calls-*.json' names the first record as what is written.
  const auto old = read_regular_file(options.trace);
  if (old && is_call_trace(*old)) {
    return Input::usage(fmt::format("--trace would replace {}, a record of a rank's calls",
                                    quoted(options.trace, options.trace.size())));
  }
  Diagnostics diagnostics;
  std::vector<RankFlight> ranks;
  std::vector<RankCalls> calls;
  int code = kFine;
  for (const std::string& file : options.files) {
    const auto text = read_regular_file(file);
    if (!text) {
      code = Input::usage(text.error());
    } else if (is_call_trace(*text)) {
      if (auto rank = read_calls(*text, file, diagnostics)) calls.push_back(std::move(*rank));
    } else if (auto flight = read_flight(*text, file, diagnostics)) {
      ranks.push_back(std::move(*flight));
    }
  }
  if (!calls.empty() && !ranks.empty()) {
    return Input::usage("files of MSCCLC_TRACE and of MSCCLC_FLIGHT_FILE; give one kind");
  }
  if (calls.empty() && !options.trace.empty()) {
    return Input::usage("--trace is for files of MSCCLC_TRACE");
  }
  if (!calls.empty()) {
    const bool bad = diagnostics.has_errors();
    const int reported = report_traces(options, calls, diagnostics);
    return std::max<int>({code, reported, bad ? kWrongProgram : kFine});
  }
  // What some ranks have written is worth a report, though others' files are cut off.
  const auto report = report_flights(std::move(ranks), diagnostics);
  print_diagnostics(diagnostics, Sources{}, "text");
  if (report) put(*report);
  return std::max<int>(code, diagnostics.has_errors() ? kWrongProgram : kFine);
}

void report_options(CommandLine& line, CLI::App& app, ReportOptions& options) {
  app.add_option("FILE", options.files,
                 "the .json files of a job's ranks: of those that failed (MSCCLC_FLIGHT_FILE), or "
                 "of all calls (MSCCLC_TRACE)")
      ->type_name("FILE")
      ->required();
  line.writes(
      app.add_option("--trace", options.trace,
                     "write the calls in Chrome's trace event format, for ui.perfetto.dev, too")
          ->type_name("OUT"));
}

}  // namespace

void add_report(CommandLine& line) {
  line.add("report", "merge what ranks recorded, and show which fell behind or came late",
           kReportExamples, report_options, run_report);
}

}  // namespace mscclc
