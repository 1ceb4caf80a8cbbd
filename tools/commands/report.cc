// mscclc report: joins the files that ranks write when their communicator fails, and says which
// ranks had launched fewer calls.
#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "tools/base/command_line.h"
#include "tools/base/files.h"
#include "tools/base/input.h"
#include "tools/report/flight_report.h"

namespace mscclc {
namespace {

int run_report(const std::vector<std::string>& files) {
  Diagnostics diagnostics;
  std::vector<RankFlight> ranks;
  int code = kFine;
  for (const std::string& file : files) {
    std::string error;
    const auto text = read_regular_file(file, error);
    if (!text) {
      code = Input::usage(error);
    } else if (auto flight = read_flight(*text, file, diagnostics)) {
      ranks.push_back(std::move(*flight));
    }
  }
  // What some ranks have written is worth a report, though others' files are cut off.
  const auto report = report_flights(std::move(ranks), diagnostics);
  print_diagnostics(diagnostics, Sources{}, "text");
  if (report) put(*report);
  return std::max<int>(code, diagnostics.has_errors() ? kWrongProgram : kFine);
}

}  // namespace

void add_report(CommandLine& line) {
  Command& command =
      line.add("report", "merge what ranks recorded when they failed, and show which fell behind",
               "  mscclc report /tmp/mscclc-*.json\n");
  auto files = std::make_shared<std::vector<std::string>>();
  command.app->add_option("FILE", *files, "the .json files of a job's ranks (MSCCLC_FLIGHT_FILE)")
      ->type_name("FILE")
      ->required();
  command.run = [files] { return run_report(*files); };
}

}  // namespace mscclc
