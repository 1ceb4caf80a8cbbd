// mscclc topology: prints how far this machine's GPUs and network devices are from each other, and
// which port each GPU's lanes over verbs use.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/App.hpp>
#include <memory>

#include "runtime/network/verbs/port/nic_map.h"
#include "runtime/network/verbs/port/options.h"
#include "tools/base/command_line.h"
#include "tools/base/files.h"

namespace mscclc {
namespace {

bool is_folder(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

void add_topology(CommandLine& line) {
  Command& command =
      line.add("topology", "show which network port is nearest to each GPU", "  mscclc topology\n");
  auto sysfs = std::make_shared<std::string>("/sys");
  command.app->add_option("--sysfs", *sysfs, "where the system shows its devices (default /sys)")
      ->type_name("FOLDER");
  command.run = [sysfs] {
    if (!is_folder(*sysfs)) {
      put_error(fmt::format("mscclc: --sysfs: there is no folder '{}'\n", *sysfs));
      return kUsage;
    }
    Diagnostics diagnostics;
    const auto options = verbs::read_verbs_options(diagnostics);
    if (!options) {
      put_error(render_text(diagnostics, Sources(), 1));
      return kUsage;
    }
    put(verbs::nic_map(verbs::PciTree(*sysfs), options->devices));
    return kFine;
  };
}

}  // namespace mscclc
