// mscclc report: joins the files that ranks write when their communicator fails, and says who was
// behind whom.
#include <CLI/App.hpp>
#include <memory>

#include "tools/command_line.h"
#include "tools/files.h"
#include "tools/flight_report.h"
#include "tools/input.h"

namespace mscclc {
namespace {

int run_report(const std::vector<std::string>& files) {
  Diagnostics diagnostics;
  std::vector<RankFlight> ranks;
  for (const std::string& file : files) {
    std::string error;
    const auto text = read_file(file, error);
    if (!text) return Input::usage(error);
    if (auto flight = read_flight(*text, file, diagnostics)) ranks.push_back(std::move(*flight));
  }
  std::optional<std::string> report;
  if (!diagnostics.has_errors()) report = report_flights(std::move(ranks), diagnostics);
  print_diagnostics(diagnostics, Sources{}, "text");
  if (!report) return kWrongProgram;
  put(*report);
  return kFine;
}

}  // namespace

void add_report(CommandLine& line) {
  Command& command =
      line.add("report", "join what ranks wrote down when they failed, and say who was behind",
               "  mscclc report /tmp/mscclc-*.json\n");
  auto files = std::make_shared<std::vector<std::string>>();
  command.app->add_option("FILE", *files, "the .json files of a job's ranks (MSCCLC_FLIGHT_FILE)")
      ->type_name("FILE")
      ->required();
  command.run = [files] { return run_report(*files); };
}

}  // namespace mscclc
