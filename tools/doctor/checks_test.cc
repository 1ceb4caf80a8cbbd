#include "tools/doctor/checks.h"

#include <catch2/catch.hpp>
#include <set>

#include "tools/doctor/fake_machine_test.h"

using namespace mscclc::doctor;
using mscclc::doctor::testing::FakeMachine;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("doctor: each check has a name of its own, finds something, and remedies what it finds") {
  std::set<std::string> names;
  for (const Check& check : checks()) CHECK(names.insert(check.name).second);
  FakeMachine empty, full;
  full.add_gpus(4);
  full.add_rdma();
  for (const FakeMachine* fake : {&empty, &full}) {
    for (const Check& check : checks()) {
      INFO(check.name);
      const Findings findings = fake->look(check.run);
      CHECK(!findings.all().empty());
      for (const Finding& f : findings.all()) {
        CHECK(!f.text.empty());
        CHECK(f.remedy.empty() == (f.level == Level::fine));
      }
    }
  }
}

TEST_CASE("doctor: a machine without GPUs is no problem, and plans run on the host") {
  FakeMachine fake;
  CHECK(fake.levels(check_driver) == "n");
  CHECK(has(fake.text(check_driver), "plans run on the host"));
  for (const auto check : {check_gpus, check_peers, check_links, check_fabric, check_multicast,
                           check_clocks, check_rdma, check_dmabuf, check_preload, check_fallback}) {
    CHECK(fake.levels(check) == "f");
  }
}

TEST_CASE("doctor: a GPU without a driver is a problem; other devices of its vendor are no GPU") {
  FakeMachine fake;
  fake.file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  fake.file("/sys/bus/pci/devices/0000:01:00.0/class", "0x068000\n");
  CHECK(fake.levels(check_driver) == "n");
  fake.file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  CHECK(fake.levels(check_driver) == "p");
  fake.add_gpus(1);
  CHECK(fake.text(check_driver) == "driver 550.54.15\n\n");
}

TEST_CASE("doctor: GPUs that are hidden, cannot be opened, or whose driver fails") {
  FakeMachine fake;
  fake.add_gpus(2);
  CHECK(fake.levels(check_gpus) == "ff");
  CHECK(has(fake.text(check_gpus), "GPU 0: H100, sm_90"));
  std::filesystem::remove(fake.machine.root + "/dev/nvidia1");
  CHECK(fake.levels(check_gpus) == "nff");
  std::filesystem::remove(fake.machine.root + "/dev/nvidia-uvm");
  CHECK(fake.levels(check_gpus) == "npff");
  fake.machine.cuda.version = 11080;
  CHECK(has(fake.text(check_gpus), "CUDA 11.8"));
  fake.machine.cuda.error = "cuInit says 999";
  CHECK(has(fake.text(check_gpus), "cuInit says 999"));
  fake.machine.cuda = {};
  CHECK(has(fake.text(check_gpus), "cannot ask the driver"));
}

TEST_CASE("doctor: GPUs that do not reach each other, by the driver or by nvidia-smi") {
  FakeMachine fake;
  fake.add_gpus(3);
  CHECK(fake.levels(check_peers) == "f");
  fake.machine.cuda.gpus[0].reaches[2] = false;
  CHECK(has(fake.text(check_peers), "0 and 2"));
  fake.machine.cuda = {};
  CHECK(fake.levels(check_peers) == "n");
  fake.prints["nvidia-smi topo -p2p r"] =
      " \tGPU0\tGPU1\tGPU2\t\n GPU0\tX\tOK\tOK\t\n GPU1\tOK\tX\tCNS\t\n GPU2\tOK\tCNS\tX\t\n\n"
      "Legend:\n\n  X    = Self\n  OK   = Status Ok\n";
  CHECK(has(fake.text(check_peers), "1 and 2 (CNS)"));
  CHECK_FALSE(has(fake.text(check_peers), "0 and"));
}

TEST_CASE("doctor: links that are down, and slots that are narrow") {
  FakeMachine fake;
  CHECK(fake.levels(check_links) == "f");
  fake.add_gpus(2);
  CHECK(fake.levels(check_links) == "f");
  std::string& shown = fake.prints["nvidia-smi nvlink -s"];
  shown =
      "GPU 0: H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
      "GPU 1: H100 (UUID: GPU-2)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n";
  CHECK(fake.text(check_links) == "2 links of NVLink for each GPU\n\n");
  shown.replace(shown.rfind("26.562 GB/s"), 11, "<inactive>");
  CHECK(fake.levels(check_links) == "pf");
  CHECK(has(fake.text(check_links), "GPU 1 has 1 active links"));
  shown = "GPU 0: H100 (UUID: GPU-1)\n";
  CHECK(has(fake.text(check_links), "by PCIe"));
  fake.file("/sys/bus/pci/devices/0000:01:00.0/max_link_width", "16\n");
  fake.file("/sys/bus/pci/devices/0000:01:00.0/current_link_width", "8\n");
  CHECK(has(fake.text(check_links), "GPU 0000:01:00.0: 8 of 16 lanes"));
}

TEST_CASE("doctor: the fabric manager") {
  FakeMachine fake;
  fake.add_gpus(2);
  fake.file("/dev/nvidia-nvswitchctl");
  CHECK(fake.levels(check_fabric) == "n");
  fake.file("/proc/77/comm", "nv-fabricmanager\n");
  CHECK(fake.levels(check_fabric) == "f");
  fake.prints["nvidia-smi --query-gpu=index,fabric"] =
      "0, Completed, Success\n1, In Progress, N/A\n";
  CHECK(fake.levels(check_fabric) == "p");
  CHECK(has(fake.text(check_fabric), "GPU 1"));
}

TEST_CASE("doctor: multicast is asked about") {
  FakeMachine fake;
  fake.add_gpus(2);
  CHECK(fake.levels(check_multicast) == "f");
  fake.machine.variables["MSCCLC_MULTICAST"] = "1";
  CHECK(fake.levels(check_multicast) == "f");
  fake.machine.cuda.gpus[1].multicast = false;
  CHECK(fake.levels(check_multicast) == "p");
  fake.machine.cuda = {};
  CHECK(fake.levels(check_multicast) == "n");
}

TEST_CASE("doctor: clocks, persistence, compute mode and MIG") {
  FakeMachine fake;
  fake.add_gpus(1);
  CHECK(fake.levels(check_clocks) == "n");
  const std::string query = "nvidia-smi --query-gpu=index,persistence_mode";
  fake.prints[query] = "0, Enabled, 1980, 1980, Default, Disabled, Not Active\n";
  CHECK(fake.levels(check_clocks) == "f");
  fake.prints[query] = "0, Disabled, 345, 1980, Exclusive_Process, Enabled, Active\n";
  CHECK(fake.levels(check_clocks) == "nnpp");
  fake.prints[query] = "nonsense\n";
  CHECK(fake.levels(check_clocks) == "f");
  const std::string modes = ",clocks.sm,clocks.max.sm,compute_mode,mig.mode.current,";
  fake.prints = {{query + modes + "clocks_throttle_reasons.hw_slowdown",
                  "0, Enabled, 345, 1980, Default, [N/A], Active\n"}};
  CHECK(fake.levels(check_clocks) == "p");
}

TEST_CASE("doctor: what memory can be shared in containers") {
  FakeMachine fake;
  CHECK(fake.levels(check_sharing) == "p");
  fake.file("/proc/sys/kernel/random/boot_id", "0c5ab1c6\n");
  fake.link("/proc/self/ns/net", "net:[4026531840]");
  CHECK(fake.levels(check_sharing) == "f");
  CHECK(has(fake.text(check_sharing), "0c5ab1c6"));
  fake.file("/.dockerenv");
  CHECK(fake.levels(check_sharing) == "fn");
  CHECK(has(fake.text(check_sharing), "--network=host"));
}

TEST_CASE("doctor: /dev/shm") {
  FakeMachine fake;
  CHECK(fake.levels(check_shm) == "n");
}

TEST_CASE("doctor: limits of the process") {
  FakeMachine fake;
  CHECK(fake.levels(check_locked_memory) == "f");
  const auto limits = [&](const std::string& memory, const std::string& files) {
    fake.file("/proc/self/limits",
              "Limit                     Soft Limit           Hard Limit           Units\n"
              "Max open files            " +
                  files +
                  "  4096 files\n"
                  "Max locked memory         " +
                  memory + "  unlimited bytes\n");
  };
  limits("8388608", "1024");
  CHECK(fake.levels(check_open_files) == "p");
  CHECK(fake.levels(check_locked_memory) == "f");  // no network device needs more
  fake.add_rdma();
  CHECK(fake.levels(check_locked_memory) == "p");
  limits("unlimited", "65536");
  CHECK(fake.levels(check_open_files) == "f");
  CHECK(fake.levels(check_locked_memory) == "f");
  limits("99999999999999999999999", "-1");
  CHECK(fake.levels(check_open_files) == "f");
  CHECK(fake.levels(check_locked_memory) == "f");
}

TEST_CASE("doctor: limits of the control group, of both versions") {
  FakeMachine fake;
  CHECK(fake.levels(check_cgroup) == "f");
  fake.file("/sys/fs/cgroup/memory.max", "max\n");
  CHECK(fake.levels(check_cgroup) == "f");
  fake.file("/sys/fs/cgroup/memory.max", "17179869184\n");
  CHECK(has(fake.text(check_cgroup), "16.0 GiB"));
  fake.file("/sys/fs/cgroup/pids.max", "100\n");
  fake.file("/sys/fs/cgroup/cpuset.cpus.effective", "0-3,8\n");
  fake.file("/sys/devices/system/cpu/present", "0-15\n");
  CHECK(fake.levels(check_cgroup) == "npn");
  CHECK(has(fake.text(check_cgroup), "5 of 16 processors"));
  FakeMachine old;
  old.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(old.levels(check_cgroup) == "f");
  old.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  CHECK(old.levels(check_cgroup) == "n");
}

TEST_CASE("doctor: network devices") {
  FakeMachine fake;
  fake.machine.variables["MSCCLC_LANE"] = "verbs";
  CHECK(fake.levels(check_rdma) == "p");
  fake.add_rdma();
  CHECK(fake.levels(check_rdma) == "f");
  CHECK(has(fake.text(check_rdma), "mlx5_0:1: InfiniBand, 400 Gb/sec"));
  fake.add_rdma("1: DOWN");
  CHECK(fake.levels(check_rdma) == "np");
  std::filesystem::remove(fake.machine.root + "/dev/infiniband/uverbs0");
  std::filesystem::remove(fake.machine.root + "/usr/lib/x86_64-linux-gnu/libibverbs.so.1");
  CHECK(fake.levels(check_rdma) == "nppp");
}

TEST_CASE("doctor: network devices and the memory of GPUs") {
  FakeMachine fake;
  fake.add_gpus(1);
  fake.add_rdma();
  CHECK(fake.levels(check_dmabuf) == "f");
  fake.machine.cuda.gpus[0].dma_buf = false;
  CHECK(fake.levels(check_dmabuf) == "p");
  fake.machine.cuda = {};
  CHECK(fake.levels(check_dmabuf) == "n");
  fake.file("/proc/modules", "nvidia_peermem 16384 0 - Live\n");
  CHECK(fake.levels(check_dmabuf) == "f");
  fake.machine.variables["MSCCLC_FORCE_DISABLE_GDR"] = "1";
  CHECK(fake.levels(check_dmabuf) == "n");
}

TEST_CASE("doctor: the library that is preloaded") {
  FakeMachine fake;
  fake.machine.variables["LD_PRELOAD"] = "/a/libfoo.so:/opt/libnccl.so.2";
  CHECK(fake.levels(check_preload) == "p");
  fake.file("/opt/libnccl.so.2", "NCCL of another");
  CHECK(has(fake.text(check_preload), "not ours"));
  fake.file("/opt/libnccl.so.2", "xx MSCCLC_NCCL_COMM xx");
  CHECK(fake.levels(check_preload) == "f");
  fake.machine.variables["LD_PRELOAD"] = "libnccl.so.2";
  CHECK(fake.levels(check_preload) == "n");
  fake.machine.variables = {{"LD_AUDIT", "/opt/libmscclc_audit.so"}};
  CHECK(has(fake.text(check_preload), "LD_AUDIT"));
}

TEST_CASE("doctor: NCCL for calls that no plan serves") {
  FakeMachine fake;
  fake.add_gpus(1);
  CHECK(fake.levels(check_fallback) == "n");
  fake.file("/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.9");
  fake.link("/usr/lib/x86_64-linux-gnu/libnccl.so.2", "libnccl.so.2.28.9");
  CHECK(has(fake.text(check_fallback), "libnccl.so.2 (2.28.9)"));
  fake.machine.variables["LD_PRELOAD"] = "/opt/libnccl.so.2";
  fake.file("/opt/libnccl_real.so.2");
  CHECK(has(fake.text(check_fallback), "/opt/libnccl_real.so.2"));
  fake.machine.variables["MSCCLC_NCCL"] = "/nowhere";
  CHECK(fake.levels(check_fallback) == "p");
  fake.file("/nowhere", "MSCCLC_NCCL_COMM");
  CHECK(has(fake.text(check_fallback), "our own library"));
  fake.file("/nowhere", "NVIDIA's");
  CHECK(fake.levels(check_fallback) == "f");
}

TEST_CASE("doctor: variables that are set, wrong or unknown") {
  FakeMachine fake;
  CHECK(fake.text(check_variables) == "none is set\n\n");
  fake.machine.variables = {{"MSCCLC_TIMEOUT", "60"}, {"NCCL_DEBUG", "INFO"}, {"PATH", "/bin"}};
  CHECK(fake.text(check_variables) == "set: MSCCLC_TIMEOUT, NCCL_DEBUG\n\n");
  fake.machine.variables["MSCCLC_TIMEOUT"] = "soon";
  CHECK(fake.levels(check_variables) == "fp");
  fake.machine.variables["MSCCLC_TIMOUT"] = "60";
  CHECK(fake.levels(check_variables) == "fpp");
  fake.machine.variables["NCCL_NO_SUCH\x1b"] = "1";
  CHECK(fake.levels(check_variables) == "fppn");
  CHECK_FALSE(has(fake.text(check_variables), "\x1b"));
}

TEST_CASE("doctor: settings that name what is not there") {
  FakeMachine fake;
  fake.file("/plans/a.json");
  fake.file("/sys/class/net/eth0/mtu");
  const auto levels = [&](const char* variable, const char* value) {
    fake.machine.variables = {{variable, value}};
    return fake.levels(check_variables);
  };
  CHECK(levels("MSCCLC_PLAN_PATH", "/plans:/plans/a.json") == "f");
  CHECK(levels("MSCCLC_PLAN_PATH", "/plans:/no/such") == "fp");
  CHECK(levels("MSCCLC_TUNER_FILE", "/no/such") == "fp");
  CHECK(levels("MSCCLC_NVRTC", "none") == "f");
  CHECK(levels("MSCCLC_TRACE", "/plans/calls-%r") == "f");
  CHECK(levels("MSCCLC_TRACE", "/%h/calls-%r") == "f");
  CHECK(levels("MSCCLC_TRACE", "/no/calls-%r") == "fp");
  CHECK(levels("MSCCLC_SOCKET_IFNAME", "eth") == "f");
  CHECK(levels("MSCCLC_SOCKET_IFNAME", "^docker") == "f");
  CHECK(levels("MSCCLC_SOCKET_IFNAME", "=eth") == "fp");
  CHECK(levels("MSCCLC_SOCKET_IFNAME", "ib") == "fp");
}

TEST_CASE("doctor: settings that say which rank a process is") {
  FakeMachine fake;
  fake.machine.variables = {{"MSCCLC_RANK", "1"}};
  CHECK(has(fake.text(check_variables), "MSCCLC_RANK is set without MSCCLC_WORLD_SIZE"));
  fake.machine.variables["MSCCLC_WORLD_SIZE"] = "2";
  CHECK(fake.levels(check_variables) == "f");
  fake.machine.variables = {{"RANK", "7"}, {"WORLD_SIZE", "2"}};
  CHECK(has(fake.text(check_variables), "RANK=7 with WORLD_SIZE=2"));
  fake.machine.variables = {{"MSCCLC_ID", "xx"}};
  CHECK(fake.levels(check_variables) == "fp");
  CHECK_FALSE(has(fake.text(check_variables), "xx"));
}

TEST_CASE("doctor: a machine of which every file is hostile") {
  FakeMachine fake;
  const std::string noise = "\xff\x01 9999999999999999999999,-5-,3-1 GPU0 GPU0 OK \n\n,,,\n";
  for (const char* path :
       {"/proc/self/limits", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max",
        "/sys/fs/cgroup/cpuset.cpus.effective", "/sys/devices/system/cpu/present",
        "/proc/driver/nvidia/version", "/proc/modules", "/proc/sys/kernel/random/boot_id",
        "/sys/class/infiniband/mlx5_0/ports/1/state"}) {
    fake.file(path, noise);
  }
  fake.prints["nvidia-smi"] = noise;
  fake.file("/dev/nvidia0");
  fake.file("/dev/nvidia1");
  const Findings findings = examine(fake.machine);
  CHECK(findings.all().size() >= checks().size());
  CHECK(!findings_json(findings).empty());
}
