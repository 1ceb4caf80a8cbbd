#include "runtime/base/node_name.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/base/failed_call.h"

namespace mscclc {
namespace {

constexpr const char* kBoot = "/proc/sys/kernel/random/boot_id";
constexpr const char* kNetwork = "/proc/self/ns/net";

}  // namespace

std::optional<std::string> node_name(std::optional<uint32_t> simulated, Diagnostics& diagnostics) {
  std::string boot;
  std::ifstream(kBoot) >> boot;
  struct stat network {};
  if (boot.empty() || ::stat(kNetwork, &network) != 0) {
    report_failed_call(diagnostics, "no-node", "cannot tell which machine this is by {}",
                       boot.empty() ? kBoot : kNetwork);
    return std::nullopt;
  }
  std::string name = fmt::format("{}/{}.{}", boot, network.st_dev, network.st_ino);
  if (simulated) name += fmt::format("/node {}", *simulated);
  return name;
}

}  // namespace mscclc
