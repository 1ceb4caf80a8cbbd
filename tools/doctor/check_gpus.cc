// Checks of GPUs and their driver.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tools/doctor/checks.h"

namespace mscclc::doctor {
namespace {

constexpr int kOldestCuda = 12000;  // that the runtime takes

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    part.erase(0, std::min(part.find_first_not_of(" \t"), part.size()));
    part.erase(part.find_last_not_of(" \t\r") + 1);
    parts.push_back(part);
  }
  return parts;
}

/// "535.161.08" in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat ...".
std::string driver_version(const std::string& text) {
  for (const std::string& word : split_at(text, ' ')) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
  }
  return "of an unknown version";
}

/// Device files of GPUs: /dev/nvidia0 ...
std::vector<std::string> gpu_files(const Machine& machine) {
  std::vector<std::string> files;
  for (const std::string& name : machine.list("/dev")) {
    if (name.starts_with("nvidia") && name.size() > 6 &&
        name.find_first_not_of("0123456789", 6) == std::string::npos) {
      files.push_back("/dev/" + name);
    }
  }
  return files;
}

/// Values of nvidia-smi for each GPU; empty: it is not there, or knows none of them.
std::vector<std::vector<std::string>> ask_smi(const Machine& machine, const std::string& what) {
  std::vector<std::vector<std::string>> rows;
  const auto text =
      machine.run("nvidia-smi --query-gpu=" + what + " --format=csv,noheader,nounits");
  if (!text) return rows;
  for (const std::string& line : split_at(*text, '\n')) {
    if (!line.empty()) rows.push_back(split_at(line, ','));
  }
  return rows;
}

bool has_driver(const Machine& machine) { return machine.exists("/proc/driver/nvidia/version"); }

bool has_nvswitch(const Machine& machine) {
  return !machine.list("/proc/driver/nvidia-nvswitch/devices").empty() ||
         machine.exists("/dev/nvidia-nvswitchctl");
}

/// Pairs that do not reach each other: "0 and 2"; from the driver.
std::vector<std::string> pairs_apart(const CudaFacts& cuda) {
  std::vector<std::string> pairs;
  for (size_t a = 0; a < cuda.gpus.size(); ++a) {
    for (size_t b = a + 1; b < cuda.gpus.size(); ++b) {
      if (!cuda.gpus[a].reaches[b] || !cuda.gpus[b].reaches[a]) {
        pairs.push_back(fmt::format("{} and {}", a, b));
      }
    }
  }
  return pairs;
}

/// The same from the table of 'nvidia-smi topo -p2p r': a row a GPU, whose cells are OK, X (itself)
/// or why not.
std::vector<std::string> pairs_apart(const std::string& table) {
  std::vector<std::string> pairs;
  size_t row = 0;
  for (const std::string& line : split_at(table, '\n')) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != fmt::format("GPU{}", row)) continue;
    std::vector<std::string> cells;
    while (words >> word) cells.push_back(word);
    if (cells.empty() || cells[0].starts_with("GPU")) continue;  // the heading
    for (size_t column = row + 1; column < cells.size(); ++column) {
      if (cells[column] == "OK") continue;
      pairs.push_back(fmt::format("{} and {} ({})", row, column, cells[column]));
    }
    ++row;
  }
  return pairs;
}

/// Links of each GPU that are active, from 'nvidia-smi nvlink -s': "Link 0: 26.562 GB/s", or
/// "<inactive>".
std::vector<size_t> active_links(const std::string& text) {
  std::vector<size_t> links;
  for (const std::string& line : split_at(text, '\n')) {
    if (line.starts_with("GPU ")) links.push_back(0);
    const bool active = line.starts_with("Link ") && line.find("GB/s") != std::string::npos;
    if (active && !links.empty()) ++links.back();
  }
  return links;
}

/// GPUs in slots that give them fewer lanes than they have. (A link's speed falls when it is idle.)
void report_narrow_slots(const Machine& machine, Findings& findings) {
  const std::string folder = "/sys/bus/pci/devices/";
  for (const std::string& device : machine.list("/proc/driver/nvidia/gpus")) {
    const auto width = machine.number(folder + device + "/current_link_width");
    const auto most = machine.number(folder + device + "/max_link_width");
    if (!width || !most || *width >= *most) continue;
    findings.problem(fmt::format("GPU {}: {} of {} lanes of PCIe work", device, *width, *most),
                     "put the card into a slot with all lanes, or reseat it");
  }
}

void report_apart(const std::vector<std::string>& pairs, size_t gpus, Findings& findings) {
  if (pairs.empty())
    return findings.fine(fmt::format("all {} GPUs reach each other's memory", gpus));
  findings.problem(
      fmt::format("GPUs do not reach each other's memory: {}", fmt::join(pairs, ", ")),
      "in a virtual machine, pass NVSwitches and IOMMU groups through; on the machine itself, turn "
      "off ACS in the firmware; MSCCLC_ plans of one node need all pairs");
}

}  // namespace

void check_driver(const Machine& machine, Findings& findings) {
  const auto text = machine.line("/proc/driver/nvidia/version");
  if (text) return findings.fine("driver " + driver_version(*text));
  if (has_gpu(machine)) {
    return findings.problem("there are GPUs of NVIDIA, and no driver for them is loaded",
                            "install the driver, or load it: modprobe nvidia; in a container, run "
                            "it with --gpus all");
  }
  findings.note("no GPU of NVIDIA: plans run on the host",
                "nothing to do for 'mscclc run', also with --device processes; GPUs in a container "
                "need --gpus all");
}

void check_gpus(const Machine& machine, Findings& findings) {
  const CudaFacts& cuda = machine.cuda;
  if (!has_driver(machine)) return findings.fine("none that a driver knows");
  const size_t known = machine.list("/proc/driver/nvidia/gpus").size();
  const std::vector<std::string> files = gpu_files(machine);
  if (files.size() < known) {
    findings.note(fmt::format("{} of the machine's {} GPUs are visible here", files.size(), known),
                  "that may be meant: a container gets the GPUs of --gpus, or of "
                  "NVIDIA_VISIBLE_DEVICES");
  }
  std::vector<std::string> closed;
  for (const std::string& file : files) {
    if (!machine.can_write(file)) closed.push_back(file);
  }
  for (const char* file : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) {
    if (!machine.can_write(file)) closed.emplace_back(file);
  }
  if (!closed.empty()) {
    findings.problem(fmt::format("this process cannot open {}", fmt::join(closed, ", ")),
                     "run 'nvidia-modprobe -u -c 0', or give the user access to these files; in a "
                     "container, run it with --gpus all");
  }
  if (!cuda.asked) {
    return findings.fine(fmt::format(
        "{} visible; this build of mscclc cannot ask the driver of CUDA", files.size()));
  }
  if (!cuda.error.empty()) {
    return findings.problem("libcuda.so.1 does not answer: " + cuda.error,
                            "libcuda.so.1 and the kernel module must have one version: reboot "
                            "after an update, or restart the container");
  }
  if (cuda.version < kOldestCuda) {
    findings.problem(
        fmt::format("the driver is for CUDA {}.{}", cuda.version / 1000, cuda.version % 1000 / 10),
        "install a driver for CUDA 12.0 or later");
  }
  for (size_t i = 0; i < cuda.gpus.size(); ++i) {
    const GpuFacts& gpu = cuda.gpus[i];
    findings.fine(fmt::format(
        "GPU {}: {}, sm_{}{}, memory is shared by {}", i, gpu.name, gpu.major, gpu.minor,
        gpu.shares_fd ? (gpu.shares_fabric ? "descriptors and fabric handles" : "descriptors")
                      : "CUDA IPC only"));
  }
}

void check_peers(const Machine& machine, Findings& findings) {
  const CudaFacts& cuda = machine.cuda;
  if (cuda.asked && cuda.error.empty() && cuda.gpus.size() > 1) {
    return report_apart(pairs_apart(cuda), cuda.gpus.size(), findings);
  }
  const size_t gpus = gpu_files(machine).size();
  if (!has_driver(machine) || gpus < 2) return findings.fine("fewer than two GPUs");
  const auto table = machine.run("nvidia-smi topo -p2p r");
  if (table) return report_apart(pairs_apart(*table), gpus, findings);
  findings.note("not known: neither the driver nor nvidia-smi could be asked",
                "install nvidia-smi, or use a build of mscclc with the GPU part");
}

void check_links(const Machine& machine, Findings& findings) {
  if (!has_driver(machine)) return findings.fine("no GPU that a driver knows");
  report_narrow_slots(machine, findings);
  const auto text = machine.run("nvidia-smi nvlink -s");
  const std::vector<size_t> links = active_links(text.value_or(""));
  if (links.empty()) return findings.fine("no NVLink, or nvidia-smi does not show it");
  const size_t most = *std::ranges::max_element(links);
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i] == most) continue;
    findings.problem(
        fmt::format("GPU {} has {} active links of NVLink, others have {}", i, links[i], most),
        "look for errors of the links: nvidia-smi nvlink -e, dmesg; reset the GPU or "
        "restart the fabric manager");
  }
  findings.fine(most == 0 ? "no NVLink is active: GPUs reach each other by PCIe"
                          : fmt::format("{} links of NVLink for each GPU", most));
}

void check_fabric(const Machine& machine, Findings& findings) {
  if (!has_nvswitch(machine)) return findings.fine("no NVSwitch that needs a fabric manager");
  for (const auto& row : ask_smi(machine, "index,fabric.state,fabric.status")) {
    if (row.size() < 3 || row[1] == "[N/A]" || row[1] == "N/A") continue;
    if (row[1] == "Completed" && row[2] == "Success") continue;
    return findings.problem(
        fmt::format("GPU {} has not joined the fabric: {}, {}", row[0], row[1], row[2]),
        "start the fabric manager, of the driver's version, on the machine itself: systemctl "
        "enable --now nvidia-fabricmanager");
  }
  for (const std::string& process : machine.list("/proc")) {
    if (machine.line("/proc/" + process + "/comm") == "nv-fabricmanager") {
      return findings.fine("the fabric manager runs");
    }
  }
  findings.note(
      "there are NVSwitches; a fabric manager is not seen from here",
      "in a container it runs outside; else: systemctl enable --now nvidia-fabricmanager");
}

void check_multicast(const Machine& machine, Findings& findings) {
  const CudaFacts& cuda = machine.cuda;
  const bool on = machine.variable("MSCCLC_MULTICAST") == "1";
  if (!cuda.asked || !cuda.error.empty() || cuda.gpus.empty()) {
    if (!on) return findings.fine("off, and not asked about");
    return findings.note("MSCCLC_MULTICAST is 1; whether the GPUs have multicast is not known",
                         "use a build of mscclc with the GPU part to ask the driver");
  }
  const bool all = std::ranges::all_of(cuda.gpus, &GpuFacts::multicast);
  if (all) return findings.fine(on ? "supported, and on" : "supported, and off (MSCCLC_MULTICAST)");
  if (!on) return findings.fine("not supported by all GPUs, and off");
  findings.problem("MSCCLC_MULTICAST is 1, and not all GPUs have multicast",
                   "unset MSCCLC_MULTICAST; multicast needs NVSwitch, compute capability 9.0 and a "
                   "fabric manager that runs");
}

void check_clocks(const Machine& machine, Findings& findings) {
  if (!has_driver(machine)) return findings.fine("no GPU that a driver knows");
  const std::string what =
      "index,persistence_mode,clocks.sm,clocks.max.sm,compute_mode,mig.mode.current,";
  auto rows = ask_smi(machine, what + "clocks_event_reasons.hw_slowdown");
  // Drivers before 535 have another name for it.
  if (rows.empty()) rows = ask_smi(machine, what + "clocks_throttle_reasons.hw_slowdown");
  if (rows.empty()) {
    return findings.note("not known: nvidia-smi is not there, or does not answer",
                         "install the driver's programs (nvidia-utils); 'nvidia-smi -q' shows "
                         "clocks and modes");
  }
  size_t problems = 0;
  for (const auto& row : rows) {
    if (row.size() < 7) continue;
    if (row[1] == "Disabled") {
      ++problems;
      findings.note(fmt::format("GPU {}: persistence mode is off: the first call waits for the "
                                "driver",
                                row[0]),
                    "nvidia-smi -pm 1, or run nvidia-persistenced");
    }
    if (row[4] == "Prohibited" || row[4] == "Exclusive_Process") {
      ++problems;
      findings.note(fmt::format("GPU {}: compute mode is {}", row[0], row[4]),
                    "nvidia-smi -c DEFAULT, if several processes are to use it");
    }
    if (row[5] == "Enabled") {
      ++problems;
      findings.problem(
          fmt::format("GPU {} is divided by MIG: its parts do not reach other GPUs", row[0]),
          "nvidia-smi -mig 0");
    }
    if (row[6] == "Active") {
      ++problems;
      findings.problem(fmt::format("GPU {} is slowed down by its hardware: {} of {} MHz", row[0],
                                   row[2], row[3]),
                       "look at power and cooling: nvidia-smi -q -d PERFORMANCE");
    }
  }
  if (problems == 0) findings.fine("persistence mode is on, no clock is held down");
}

}  // namespace mscclc::doctor
