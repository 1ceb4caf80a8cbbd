#include "runtime/support/host_place.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <string_view>

#include "runtime/support/failed_call.h"

namespace mscclc {
namespace {

constexpr const char* kBoot = "/proc/sys/kernel/random/boot_id";
constexpr const char* kNetwork = "/proc/self/ns/net";

}  // namespace

std::optional<HostPlace> this_host_place(Diagnostics& diagnostics) {
  HostPlace place;
  std::ifstream file(kBoot, std::ios::binary);
  file.read(reinterpret_cast<char*>(place.boot.data()), place.boot.size());
  const bool booted = file.gcount() == static_cast<std::streamsize>(place.boot.size());
  struct stat network {};
  if (!booted || ::stat(kNetwork, &network) != 0) {
    report_failed_call(diagnostics, "no-node", "cannot find out which machine this is by {}",
                       booted ? kNetwork : kBoot);
    return std::nullopt;
  }
  place.device = network.st_dev;
  place.inode = network.st_ino;
  return place;
}

std::string text_of(const HostPlace& place, std::optional<uint32_t> simulated) {
  const std::string_view boot(reinterpret_cast<const char*>(place.boot.data()), place.boot.size());
  std::string text = fmt::format("{}/{}.{}", boot, place.device, place.inode);
  if (simulated) text += fmt::format("/node {}", *simulated);
  return text;
}

}  // namespace mscclc
