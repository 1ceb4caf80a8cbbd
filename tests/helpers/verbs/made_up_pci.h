// For tests: a tree of PCI devices, as sysfs shows it, made up in a folder of its own.
#pragma once

#include <filesystem>
#include <string>

#include "tests/helpers/files/made_up_folder.h"

namespace mscclc::verbs::testing {

class MadeUpPci {
 public:
  std::string sysfs() const { return root_.path(); }
  void load_module(const std::string& name) const {
    std::filesystem::create_directories(root_.file("module/" + name));
  }
  /// A GPU at "pci0000:00/0000:00:01.0/0000:01:00.0"; `node`: its NUMA node.
  void add_gpu(const std::string& path, int node) const {
    const std::string device = add_device(path, node);
    write(device + "/vendor", "0x10de");
    write(device + "/class", "0x030200");
  }
  /// A network device of that name there, with one port. path "": a device in software.
  void add_network_device(const std::string& name, const std::string& path, int node,
                          const std::string& state = "4: ACTIVE",
                          const std::string& link = "InfiniBand") const {
    const std::string parent = path.empty() ? "devices/virtual" : add_device(path, node);
    const std::string own = parent + "/infiniband/" + name;
    write(own + "/ports/1/state", state);
    write(own + "/ports/1/link_layer", link);
    if (!path.empty())
      std::filesystem::create_directory_symlink("../..", root_.file(own + "/device"));
    link_to(own, "class/infiniband/" + name);
  }

 private:
  std::string add_device(const std::string& path, int node) const {
    const std::string device = "devices/" + path;
    write(device + "/numa_node", std::to_string(node));
    link_to(device, "bus/pci/devices/" + std::filesystem::path(path).filename().string());
    return device;
  }
  void link_to(const std::string& what, const std::string& link) const {
    const std::filesystem::path at = root_.file(link);
    std::filesystem::create_directories(at.parent_path());
    if (!std::filesystem::exists(at))
      std::filesystem::create_directory_symlink(root_.file(what), at);
  }
  void write(const std::string& file, const std::string& text) const {
    root_.write(file, text + "\n");
  }

  const mscclc::testing::MadeUpFolder root_;
};

}  // namespace mscclc::verbs::testing
