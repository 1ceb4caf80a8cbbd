// Checks of the network between machines.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/doctor/checks.h"

namespace mscclc::doctor {
namespace {

const std::string kDevices = "/sys/class/infiniband/";

struct Port {
  std::string name;   ///< "mlx5_0:1"
  std::string state;  ///< "4: ACTIVE"
  std::string link, rate;
  bool active() const { return state.find("ACTIVE") != std::string::npos; }
};

std::vector<Port> ports_of(const Machine& machine) {
  std::vector<Port> ports;
  for (const std::string& device : machine.list(kDevices)) {
    for (const std::string& port : machine.list(kDevices + device + "/ports")) {
      const std::string folder = kDevices + device + "/ports/" + port + "/";
      ports.push_back({device + ":" + port, machine.line(folder + "state").value_or("not known"),
                       machine.line(folder + "link_layer").value_or(""),
                       machine.line(folder + "rate").value_or("")});
    }
  }
  return ports;
}

bool has_library(const Machine& machine, const std::string& name) {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/lib/x86_64-linux-gnu/",
        "/lib/aarch64-linux-gnu/", "/usr/lib64/", "/lib64/", "/usr/lib/", "/usr/local/lib/"}) {
    if (machine.exists(folder + name)) return true;
  }
  return false;
}

}  // namespace

void check_rdma(const Machine& machine, Findings& findings) {
  const std::vector<Port> ports = ports_of(machine);
  if (ports.empty()) {
    if (machine.variable("MSCCLC_LANE") == "verbs") {
      return findings.problem("MSCCLC_LANE is verbs, and there is no InfiniBand or RoCE device",
                              "unset MSCCLC_LANE: ranks of other machines are reached by sockets");
    }
    return findings.fine("no InfiniBand or RoCE device: machines are joined by sockets");
  }
  for (const Port& port : ports) {
    if (port.active()) {
      findings.fine(fmt::format("{}: {}, {}", port.name, port.link, port.rate));
    } else {
      findings.note(fmt::format("{} is not active: {}", port.name, port.state),
                    "plug in its cable, or leave it out: MSCCLC_IB_HCA=^" + port.name);
    }
  }
  if (std::ranges::none_of(ports, &Port::active)) {
    findings.problem("no port is active", "ranks of other machines are reached by sockets only");
  }
  if (!has_library(machine, "libibverbs.so.1") && machine.variable("MSCCLC_IBV_SO").empty()) {
    findings.problem("libibverbs.so.1 is not installed",
                     "install it (libibverbs1, rdma-core), or name it: MSCCLC_IBV_SO");
  }
  bool usable = false;
  for (const std::string& name : machine.list("/dev/infiniband")) {
    usable = usable || (name.starts_with("uverbs") && machine.can_write("/dev/infiniband/" + name));
  }
  if (!usable) {
    findings.problem("this process cannot open /dev/infiniband/uverbs*",
                     "give the user access; for a container: --device=/dev/infiniband");
  }
}

void check_dmabuf(const Machine& machine, Findings& findings) {
  if (!has_rdma(machine) || !has_gpu(machine)) {
    return findings.fine("not needed: it is for GPUs beside InfiniBand or RoCE");
  }
  if (machine.variable("MSCCLC_FORCE_DISABLE_GDR") == "1") {
    return findings.note("MSCCLC_FORCE_DISABLE_GDR is 1: data of GPUs goes through host memory",
                         "unset it");
  }
  const auto modules = machine.read("/proc/modules").value_or("");
  const bool peer_memory = modules.find("nvidia_peermem ") != std::string::npos;
  const CudaFacts& cuda = machine.cuda;
  const bool asked = cuda.asked && cuda.error.empty() && !cuda.gpus.empty();
  const bool dma_buf = asked && std::ranges::all_of(cuda.gpus, &GpuFacts::dma_buf);
  if (dma_buf) return findings.fine("network devices reach the memory of GPUs by dma-bufs");
  if (peer_memory) return findings.fine("network devices reach it by the module nvidia_peermem");
  const char* remedy =
      "use the open kernel modules of the driver and Linux 5.12 or later, or: modprobe "
      "nvidia_peermem";
  if (asked) {
    return findings.problem(
        "network devices do not reach the memory of GPUs: data goes through "
        "host memory",
        remedy);
  }
  findings.note("nvidia_peermem is not loaded; whether there are dma-bufs is not known", remedy);
}

}  // namespace mscclc::doctor
