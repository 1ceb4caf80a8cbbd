#include "runtime/verbs/port/nic_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc::verbs {
namespace {

using NetworkPort = PciTree::NetworkPort;

/// Why no lane uses a port; "": lanes may.
std::string_view obstacle(const NetworkPort& port, const HcaList& allowed) {
  if (!allowed.has(port.device, port.number)) return "left out by MSCCLC_IB_HCA";
  return port.active ? "" : "not active";
}

std::string rows_of(const PciTree& tree, const std::string& gpu,
                    const std::vector<NetworkPort>& ports, const HcaList& allowed) {
  std::vector<size_t> usable;
  std::vector<std::string> devices;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!obstacle(ports[i], allowed).empty()) continue;
    usable.push_back(i);
    devices.push_back(ports[i].device);
  }
  const size_t taken = usable.empty() ? ports.size() : usable[take_nearest(tree, gpu, devices)];
  std::string rows;
  for (size_t i = 0; i < ports.size(); ++i) {
    const NetworkPort& port = ports[i];
    const std::string row = fmt::format(
        "{:<12}  {:<12}  {:<12}  {:<10}  {}", i == 0 ? gpu : "",
        fmt::format("{}:{}", port.device, port.number), name(tree.distance(gpu, port.device).reach),
        port.link_layer, i == taken ? "lanes use it" : obstacle(port, allowed));
    rows += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return rows;
}

}  // namespace

std::string nic_map(const PciTree& tree, const HcaList& allowed) {
  const auto gpus = tree.gpus();
  const auto ports = tree.network_ports();
  if (gpus.empty()) return "This machine has no GPU of NVIDIA's.\n";
  if (ports.empty()) return "This machine has no InfiniBand or RoCE device.\n";
  std::string text =
      fmt::format("{:<12}  {:<12}  {:<12}  {:<10}\n", "# GPU", "port", "joined by", "link");
  text = text.substr(0, text.find_last_not_of(" \n") + 1) + "\n";
  for (const std::string& gpu : gpus) text += rows_of(tree, gpu, ports, allowed);
  return text;
}

}  // namespace mscclc::verbs
