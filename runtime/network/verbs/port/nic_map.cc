#include "runtime/network/verbs/port/nic_map.h"

#include <fmt/format.h>

namespace mscclc::verbs {
namespace {

using NetworkPort = PciTree::NetworkPort;

/// Why no lane uses a port; "": lanes may.
std::string_view obstacle(const NetworkPort& port, const HcaList& allowed) {
  if (!allowed.has(port.device, port.number)) return "left out by MSCCLC_IB_HCA";
  return port.active ? "" : "not active";
}

/// The row without spaces at its end.
std::string line_of(const std::string& row) {
  return row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
}

std::string name_of(const NetworkPort& port) {
  return fmt::format("{}:{}", port.device, port.number);
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
    rows +=
        line_of(fmt::format("{:<12}  {:<12}  {:<12}  {:<10}  {}", i == 0 ? gpu : "", name_of(port),
                            name(tree.distance(gpu, port.device).reach), port.link_layer,
                            i == taken ? "lanes use it" : obstacle(port, allowed)));
  }
  return rows;
}

/// Ranks on processors take the first port that they may.
std::string ports_of_processors(const std::vector<NetworkPort>& ports, const HcaList& allowed) {
  std::string rows = "# port        link\n";
  bool taken = false;
  for (const NetworkPort& port : ports) {
    std::string_view note = obstacle(port, allowed);
    if (note.empty() && !taken) {
      taken = true;
      note = "lanes use it";
    }
    rows += line_of(fmt::format("{:<12}  {:<10}  {}", name_of(port), port.link_layer, note));
  }
  return rows;
}

}  // namespace

std::string nic_map(const PciTree& tree, const HcaList& allowed) {
  const auto gpus = tree.gpus();
  const auto ports = tree.network_ports();
  std::string text;
  if (gpus.empty()) text += "This machine has no GPU of NVIDIA's.\n";
  if (ports.empty()) text += "This machine has no InfiniBand or RoCE device.\n";
  if (ports.empty()) {
    if (!gpus.empty()) text += fmt::format("# GPU\n{}\n", fmt::join(gpus, "\n"));
    return text;
  }
  if (gpus.empty()) return text + ports_of_processors(ports, allowed);
  text += "# GPU         port          joined by     link\n";
  for (const std::string& gpu : gpus) text += rows_of(tree, gpu, ports, allowed);
  return text;
}

}  // namespace mscclc::verbs
