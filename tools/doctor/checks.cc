#include "tools/doctor/checks.h"

#include <algorithm>

namespace mscclc::doctor {
namespace {

constexpr Check kChecks[] = {
    {"driver", "the kernel module of NVIDIA", check_driver},
    {"gpus", "GPUs, and whether this process may use them", check_gpus},
    {"peers", "which GPUs reach each other's memory", check_peers},
    {"links", "links of NVLink and lanes of PCIe", check_links},
    {"fabric", "the fabric manager of NVSwitch", check_fabric},
    {"multicast", "multicast of NVSwitch (asked about, never made)", check_multicast},
    {"clocks", "persistence mode, clocks that are held down, compute mode, MIG", check_clocks},
    {"sharing", "how processes of this machine share memory: namespaces, boot id", check_sharing},
    {"shm", "the size of /dev/shm", check_shm},
    {"memlock", "the limit of locked memory", check_locked_memory},
    {"files", "the limit of open files", check_open_files},
    {"cgroup", "limits of the control group: memory, processes, processors", check_cgroup},
    {"rdma", "InfiniBand and RoCE devices", check_rdma},
    {"dmabuf", "whether network devices reach the memory of GPUs", check_dmabuf},
    {"preload", "whether our libnccl.so.2 is the one that is loaded", check_preload},
    {"fallback", "which NCCL serves calls that no plan serves", check_fallback},
    {"variables", "MSCCLC_ and NCCL_ variables that are set", check_variables},
};

}  // namespace

std::span<const Check> checks() { return kChecks; }

Findings examine(const Machine& machine) {
  Findings findings;
  for (const Check& check : kChecks) {
    findings.begin(check.name);
    check.run(machine, findings);
  }
  return findings;
}

bool has_gpu(const Machine& machine) {
  const std::string folder = "/sys/bus/pci/devices/";
  return std::ranges::any_of(
             machine.list(folder),
             [&](const std::string& device) {
               // Display controllers (class 03) of vendor 10de; others of it are switches and
               // bridges.
               return machine.line(folder + device + "/vendor") == "0x10de" &&
                      machine.line(folder + device + "/class").value_or("").starts_with("0x03");
             }) ||
         !machine.list("/proc/driver/nvidia/gpus").empty();
}

bool has_rdma(const Machine& machine) { return !machine.list("/sys/class/infiniband").empty(); }

}  // namespace mscclc::doctor
