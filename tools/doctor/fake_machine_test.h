// A machine of files in a folder of its own, variables and answers that a test chooses.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/helpers/files/made_up_folder.h"
#include "tools/doctor/checks.h"

namespace mscclc::doctor::testing {

class FakeMachine {
 public:
  FakeMachine() {
    machine.root = folder_.path();
    machine.run = [this](const std::string& command) -> std::optional<std::string> {
      for (const auto& [beginning, text] : prints) {
        if (command.starts_with(beginning)) return text;
      }
      return std::nullopt;
    };
  }

  void file(const std::string& path, const std::string& text = "") const {
    folder_.write(path, text);
  }
  void link(const std::string& path, const std::string& target) const {
    const std::filesystem::path whole = folder_.file(path);
    std::filesystem::create_directories(whole.parent_path());
    std::filesystem::create_symlink(target, whole);
  }
  /// GPUs that the driver and CUDA know, all within reach of each other.
  void add_gpus(size_t count) {
    file("/proc/driver/nvidia/version",
         "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15");
    file("/dev/nvidiactl");
    file("/dev/nvidia-uvm");
    machine.cuda = {.asked = true, .error = "", .version = 12040, .gpus = {}};
    for (size_t i = 0; i < count; ++i) {
      file("/proc/driver/nvidia/gpus/0000:0" + std::to_string(i) + ":00.0/information");
      file("/dev/nvidia" + std::to_string(i));
      machine.cuda.gpus.push_back({.name = "H100",
                                   .major = 9,
                                   .minor = 0,
                                   .shares_fd = true,
                                   .shares_fabric = true,
                                   .multicast = true,
                                   .dma_buf = true,
                                   .reaches = std::vector<bool>(count, true)});
    }
  }
  void add_rdma(const std::string& state = "4: ACTIVE") const {
    const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
    file(port + "state", state + "\n");
    file(port + "link_layer", "InfiniBand\n");
    file(port + "rate", "400 Gb/sec (4X NDR)\n");
    file("/dev/infiniband/uverbs0");
    file("/usr/lib/x86_64-linux-gnu/libibverbs.so.1");
  }

  Findings look(void (*check)(const Machine&, Findings&)) const {
    Findings findings;
    check(machine, findings);
    return findings;
  }
  /// The levels of what a check finds, a letter each: "fnp".
  std::string levels(void (*check)(const Machine&, Findings&)) const {
    std::string all;
    const Findings findings = look(check);
    for (const Finding& f : findings.all()) {
      all += f.level == Level::fine ? 'f' : f.level == Level::note ? 'n' : 'p';
    }
    return all;
  }
  /// The texts and remedies of what a check finds, in one.
  std::string text(void (*check)(const Machine&, Findings&)) const {
    std::string all;
    const Findings findings = look(check);
    for (const Finding& f : findings.all()) all += f.text + "\n" + f.remedy + "\n";
    return all;
  }

  Machine machine;
  std::map<std::string, std::string> prints;  ///< by how commands begin

 private:
  const mscclc::testing::MadeUpFolder folder_;
};

}  // namespace mscclc::doctor::testing
