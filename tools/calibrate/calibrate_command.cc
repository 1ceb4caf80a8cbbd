// mscclc calibrate: measures this machine and writes a machine file, from which `mscclc explain`
// predicts times.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>

#include "tools/calibrate/calibration.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/progress.h"
#include "tools/io/sizes.h"
#include "tools/measure/team_options.h"

namespace mscclc {
namespace {

constexpr const char* kCalibrateExamples = R"(  mscclc calibrate -o mine.json
  mscclc calibrate --device threads --ranks 2 --max-bytes 1M -o host.json
  mscclc calibrate --network --base mine.json -o nodes.json
  mscclc explain ring.mscl --bytes 1K:64M:4 --machine mine.json)";

struct CalibrateOptions {
  TeamChoice team;
  std::string output, name, base = "4xH200", max_bytes = "64M";
  double tolerance = 10;  ///< percent
  bool network = false;
};

int refuse(const Diagnostics& diagnostics, ExitCode code) {
  put_error(render_text(diagnostics, Sources()));
  return code;
}

/// What the file says of itself.
void describe(Machine& machine, const CalibrateOptions& options, const RankTeam& team,
              const calibrate::Calibration& calibration) {
  machine.name = options.name;
  if (machine.name.empty() && options.output != "-") {
    machine.name = std::filesystem::path(options.output).stem().string();
  }
  if (machine.name.empty()) machine.name = "this machine";
  machine.measured = true;
  machine.description = fmt::format("{} x {}{}", team.ranks(), team.device(),
                                    options.network ? ", each a node of its own" : "");
  const size_t apart = calibrate::count_apart(calibration, options.tolerance / 100);
  machine.sources = {fmt::format(
      "mscclc calibrate: {} probes, calls {}; of {} the second time differed by more than {:g} %",
      calibration.probes.size(), team.launches(), apart, options.tolerance)};
  std::string unseen;
  for (const MachineField& field : machine_fields()) {
    const auto& found = calibration.fit.figures;
    const bool asked =
        field.value == &Machine::launch_multiprocessors && team.multiprocessors() != 0;
    const bool seen = asked || std::ranges::any_of(found, [&](const cost::FittedFigure& f) {
                        return f.field == &field && f.seen;
                      });
    if (!seen)
      unseen += fmt::format("{}{}.{}", unseen.empty() ? "" : ", ", field.group, field.name);
  }
  if (!unseen.empty()) {
    machine.sources.push_back(fmt::format("not measured, as in '{}': {}", options.base, unseen));
  }
}

int run_calibrate(const CalibrateOptions& options) {
  const auto max_bytes = parse_bytes(options.max_bytes);
  if (!max_bytes) {
    return Input::usage(fmt::format("--max-bytes: '{}' is no size", options.max_bytes));
  }
  if (const auto could = could_write(options.output); !could) return Input::usage(could.error());
  Diagnostics diagnostics;
  auto base = find_machine(options.base, diagnostics);
  if (!base) return refuse(diagnostics, kUsage);
  const auto found = ranks_of(options.team, diagnostics);
  if (!found) return Input::usage(found.error());
  const std::vector<uint32_t>& ranks = *found;
  if (ranks.empty()) return refuse(diagnostics, kUsage);
  const auto team = start_team(options.team, ranks.front(), options.network ? 1 : 0, diagnostics);
  if (team == nullptr) return refuse(diagnostics, kWrongResult);
  base->nodes = options.network ? team->ranks() : 1;
  base->gpus = options.network ? 1 : team->ranks();
  base->links = team->links() == LinkKind::pcie ? LinkKind::pcie : LinkKind::nvlink;
  calibrate::ProbeLimits limits{.ranks = team->ranks(), .max_bytes = *max_bytes};
  limits.lines = base->links == LinkKind::nvlink;
  limits.network = options.network;
  if (team->multiprocessors() != 0) {
    limits.max_blocks = team->multiprocessors();
    base->launch_multiprocessors = team->multiprocessors();
  }
  const std::vector<calibrate::Probe> probes = calibrate::probes_for(limits);
  std::optional<calibrate::Calibration> calibration;
  {
    Progress progress("calibrate", calibrate::pieces(probes.size()));
    calibration = calibrate::calibrate(
        *team, probes, {*base, calibrate::fields_to_find(options.network)},
        [&](const std::string& piece) { progress.next(piece); }, diagnostics);
  }
  if (!calibration) return refuse(diagnostics, kWrongResult);
  Machine& machine = calibration->fit.machine;
  describe(machine, options, *team, *calibration);
  const double tolerance = options.tolerance / 100;
  const auto written = write_file(options.output, machine_text(machine));
  if (!written) return Input::usage(written.error());
  // A table and a machine file do not go into the same stream.
  const std::string text = calibrate::calibration_text(*calibration, tolerance);
  options.output == "-" ? put_error(text) : put(text);
  if (calibrate::count_apart(*calibration, tolerance) == 0) return kFine;
  put_error(
      fmt::format("mscclc calibrate: '{}' is written, but do not rely on it: times of this "
                  "machine are not steady; let nothing else run on it, or see --tolerance\n",
                  options.output));
  return kWrongResult;
}

void calibrate_options(CommandLine& line, CLI::App& app, CalibrateOptions& options) {
  line.writes(
      app.add_option("-o,--output", options.output, "the machine file; '-' is standard output")
          ->type_name("FILE")
          ->required());
  add_team_options(line, app, options.team, false);
  line.takes_text(app.add_option("--name", options.name,
                                 "what the machine is called (the file's name, without .json)")
                      ->type_name("NAME"));
  app.add_option("--base", options.base,
                 "a machine, built in or a file, whose figures stay where nothing here shows them "
                 "(4xH200)")
      ->type_name("MACHINE");
  line.takes_text(app.add_option("--max-bytes", options.max_bytes, "the largest message (64M)")
                      ->type_name("SIZE"));
  line.takes_number<double>(
      app.add_option("--tolerance", options.tolerance,
                     "percent by which a second measurement may differ; if more, the exit code is "
                     "3 (10)")
          ->type_name("PERCENT"));
  app.add_flag("--network", options.network,
               "each rank is a node of its own: the figures of the network (nic) in the place of "
               "those of links within a node");
}

}  // namespace

void add_calibrate(CommandLine& line) {
  line.add("calibrate", "measure this machine: a machine file for 'mscclc explain'",
           kCalibrateExamples, calibrate_options, run_calibrate);
}

}  // namespace mscclc
