// mscclc topology: prints how far this machine's GPUs and network devices are from each other, and
// which port each GPU's lanes over verbs use; or which plans do without a link.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include "runtime/network/verbs/port/nic_map.h"
#include "runtime/network/verbs/port/options.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/topology/banned_plans.h"

namespace mscclc {
namespace {

constexpr const char* kTopologyExamples = R"(  mscclc topology
  mscclc topology --ban 0-3
  mscclc topology --ban 0-3,1-2 --ranks 8 --collective broadcast -o plans_without)";

bool is_folder(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

struct TopologyOptions {
  std::string sysfs = "/sys", bans, collective = "allreduce", output;
  uint32_t ranks = 4;
};

int show_ports(const std::string& sysfs) {
  if (!is_folder(sysfs)) {
    put_error(fmt::format("mscclc: --sysfs: there is no folder '{}'\n", sysfs));
    return kUsage;
  }
  Diagnostics diagnostics;
  const auto options = verbs::read_verbs_options(diagnostics);
  if (!options) {
    put_error(render_text(diagnostics, Sources(), 1));
    return kUsage;
  }
  put(verbs::nic_map(verbs::PciTree(sysfs), options->devices));
  return kFine;
}

int list_without(const TopologyOptions& options) {
  topology::BanOptions wanted{.ranks = options.ranks, .bans = {}, .output = options.output};
  const auto kind = find_collective(options.collective);
  if (!kind) {
    return Input::usage("--collective: " + unknown_collective(options.collective));
  }
  Contract contract;
  contract.kind = wanted.kind = *kind;
  if (!topology::can_be_renumbered(contract)) {
    return Input::usage(fmt::format(
        "--collective {}: every two ranks exchange data of their own, so that no numbering "
        "of the ranks leaves a link out",
        options.collective));
  }
  auto bans = topology::parse_bans(options.bans, options.ranks);
  if (!bans) return Input::usage("--ban: " + bans.error().text());
  wanted.bans = *std::move(bans);
  return topology::list_plans_without(wanted);
}

void topology_options(CommandLine& line, CLI::App& app, TopologyOptions& options) {
  CLI::Option* sysfs =
      app.add_option("--sysfs", options.sysfs, "where the system shows its devices (default /sys)")
          ->type_name("FOLDER");
  CLI::Option* ban = line.takes_text(
      app.add_option("--ban", options.bans,
                     "links between two ranks, separated by commas: list the library's programs "
                     "whose ranks can be numbered so that no channel is there")
          ->type_name("LINKS")
          ->excludes(sysfs));
  line.takes_text(app.add_option("--ranks", options.ranks, "with --ban: how many ranks (4)")
                      ->type_name("N")
                      ->check(CLI::Range(uint32_t{2}, uint32_t{64}))
                      ->needs(ban));
  line.takes(app.add_option("--collective", options.collective,
                            "with --ban: allreduce, reduce or broadcast (allreduce)")
                 ->type_name("KIND")
                 ->needs(ban),
             {"allreduce", "reduce", "broadcast"});
  app.add_option("-o,--output", options.output,
                 "with --ban: a folder for the plans, which MSCCLC_PLAN_PATH takes")
      ->type_name("FOLDER")
      ->needs(ban);
}

}  // namespace

void add_topology(CommandLine& line) {
  line.add("topology", "show which network port is nearest to each GPU, or plans without a link",
           kTopologyExamples, topology_options, [](const TopologyOptions& options) {
             return options.bans.empty() ? show_ports(options.sysfs) : list_without(options);
           });
}

}  // namespace mscclc
