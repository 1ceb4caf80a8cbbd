// How far network devices are from GPUs, in the tree of PCI devices that Linux shows (sysfs). A
// GPU's bytes should leave by a device that is near: below the same switch they need not pass the
// processor, and on another NUMA node they also cross what joins the processors.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mscclc::verbs {

/// The shorter one is less.
struct PciDistance {
  enum class Reach : uint8_t {
    one_switch,   ///< below one PCI switch, or one function of a device beside another
    switches,     ///< below several switches, of one port of the processor
    host_bridge,  ///< through a host bridge of the processor
    numa_node,    ///< through several host bridges of one NUMA node
    machine,      ///< from one NUMA node to another
    unknown       ///< one of the two is no PCI device, as devices in software
  };
  Reach reach = Reach::unknown;
  uint32_t hops = 0;  ///< links of the tree between them, where it joins them
  auto operator<=>(const PciDistance&) const = default;
};
/// "one switch"
std::string_view name(PciDistance::Reach reach);

/// Reads sysfs anew each time. What it cannot read is not there.
class PciTree {
 public:
  explicit PciTree(std::string sysfs = "/sys") : sysfs_(std::move(sysfs)) {}

  /// From the device of this PCI number ("0000:3b:00.0", in either case) to a network device
  /// ("mlx5_0").
  PciDistance distance(std::string_view gpu, std::string_view network_device) const;
  /// The numbers of NVIDIA's GPUs, in order.
  std::vector<std::string> gpus() const;

  struct NetworkPort {
    std::string device;
    uint8_t number = 1;
    bool active = false;
    std::string link_layer = {};  ///< as the system says: "InfiniBand", "Ethernet"
  };
  /// Ports of InfiniBand and RoCE devices, in order.
  std::vector<NetworkPort> network_ports() const;

 private:
  struct PciLocation {
    std::vector<std::string> path;  ///< from the root of the tree
    int numa_node = -1;             ///< -1: the system does not say
  };
  std::optional<PciLocation> place(const std::string& link) const;
  std::string read(const std::string& file) const;
  std::vector<std::string> list(const std::string& folder) const;

  const std::string sysfs_;
};

/// Which port a GPU uses: one of those whose devices are nearest. GPUs that are equally near to the
/// same ones take turns at them. REQUIRES: !devices.empty(), the device of each port.
size_t take_nearest(const PciTree& tree, std::string_view gpu,
                    std::span<const std::string> devices);

}  // namespace mscclc::verbs
