#include "runtime/network/verbs/port/pci.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "ir/support/precondition.h"

namespace mscclc::verbs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNvidia = "0x10de";
constexpr std::string_view kDisplay = "0x03";  ///< class of GPUs, with and without a screen
/// Below a switch each device has a bridge of its own, the switch's port.
constexpr size_t kBelowSwitch = 2;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

int number_in(const std::string& text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// What the devices have in common of their paths.
size_t common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return static_cast<size_t>(end - a.begin());
}

/// The numbers of those that are nearest.
std::vector<size_t> nearest(const PciTree& tree, std::string_view gpu,
                            std::span<const std::string> devices) {
  std::vector<PciDistance> distances;
  for (const std::string& device : devices) distances.push_back(tree.distance(gpu, device));
  const PciDistance least = std::ranges::min(distances);
  std::vector<size_t> result;
  for (size_t i = 0; i < distances.size(); ++i) {
    if (distances[i] == least) result.push_back(i);
  }
  return result;
}

}  // namespace

std::string_view name(PciDistance::Reach reach) {
  switch (reach) {
    case PciDistance::Reach::one_switch:
      return "one switch";
    case PciDistance::Reach::switches:
      return "switches";
    case PciDistance::Reach::host_bridge:
      return "host bridge";
    case PciDistance::Reach::numa_node:
      return "NUMA node";
    case PciDistance::Reach::machine:
      return "machine";
    case PciDistance::Reach::unknown:
      return "unknown";
  }
  return "";
}

/// Where a link leads: "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0".
std::optional<PciTree::PciLocation> PciTree::place(const std::string& link) const {
  std::error_code error;
  const fs::path path = fs::canonical(sysfs_ + "/" + link, error);
  if (error) return std::nullopt;
  PciLocation place;
  for (const fs::path& part : path) {
    const std::string text = part.string();
    if (!place.path.empty() || text.starts_with("pci")) place.path.push_back(text);
  }
  if (place.path.empty()) return std::nullopt;
  place.numa_node = number_in(read(link + "/numa_node"));
  return place;
}

std::string PciTree::read(const std::string& file) const {
  std::ifstream stream(sysfs_ + "/" + file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::vector<std::string> PciTree::list(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(sysfs_ + "/" + folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

PciDistance PciTree::distance(std::string_view gpu, std::string_view network_device) const {
  using Reach = PciDistance::Reach;
  const auto from = place("bus/pci/devices/" + lower(gpu));
  const auto to = place("class/infiniband/" + std::string(network_device) + "/device");
  if (!from || !to) return {};
  const size_t shared = common(from->path, to->path);
  const size_t up = from->path.size() - shared, down = to->path.size() - shared;
  const auto hops = static_cast<uint32_t>(up + down);
  if (shared > 1) {  // more than the host bridge
    const bool one = up <= kBelowSwitch && down <= kBelowSwitch;
    return {one ? Reach::one_switch : Reach::switches, hops};
  }
  if (shared == 1) return {Reach::host_bridge, hops};
  const bool same_node = from->numa_node >= 0 && from->numa_node == to->numa_node;
  return {same_node ? Reach::numa_node : Reach::machine, hops};
}

std::vector<std::string> PciTree::gpus() const {
  std::vector<std::string> found;
  for (const std::string& device : list("bus/pci/devices")) {
    const std::string folder = "bus/pci/devices/" + device;
    if (read(folder + "/vendor") == kNvidia && read(folder + "/class").starts_with(kDisplay)) {
      found.push_back(device);
    }
  }
  return found;
}

std::vector<PciTree::NetworkPort> PciTree::network_ports() const {
  std::vector<NetworkPort> found;
  for (const std::string& device : list("class/infiniband")) {
    for (const std::string& port : list("class/infiniband/" + device + "/ports")) {
      const std::string folder = "class/infiniband/" + device + "/ports/" + port;
      const int number = number_in(port);
      if (number < 1 || number > UINT8_MAX) continue;
      found.push_back({.device = device,
                       .number = static_cast<uint8_t>(number),
                       .active = read(folder + "/state").ends_with("ACTIVE"),
                       .link_layer = read(folder + "/link_layer")});
    }
  }
  return found;
}

size_t take_nearest(const PciTree& tree, std::string_view gpu,
                    std::span<const std::string> devices) {
  precondition(!devices.empty());
  const std::string own = lower(gpu);
  const std::vector<size_t> near = nearest(tree, own, devices);
  size_t turn = 0;
  for (const std::string& other : tree.gpus()) {
    if (other < own && nearest(tree, other, devices) == near) ++turn;
  }
  return near[turn % near.size()];
}

}  // namespace mscclc::verbs
