// Checks of what the operating system allows.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>

#include "tools/doctor/checks.h"

namespace mscclc::doctor {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = uint64_t{1} << 30;
constexpr uint64_t kLeastShm = kGiB, kLeastFiles = 4096, kLeastProcesses = 1024;
constexpr long kMaxProcessors = 1 << 20;
constexpr uint64_t kUnlimited = UINT64_MAX;

/// The soft limit of a row of /proc/self/limits: "Max open files  1024  524288  files".
std::optional<uint64_t> limit(const Machine& machine, const std::string& name) {
  const auto text = machine.read("/proc/self/limits");
  const size_t at = text ? text->find(name) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  std::istringstream rest(text->substr(at + name.size()));
  std::string value;
  rest >> value;
  if (value == "unlimited") return kUnlimited;
  if (value.empty() || value.size() > 19 ||
      value.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoull(value);
}

std::string bytes_text(uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kGiB);
  return fmt::format("{} MiB", bytes / kMiB);
}

bool in_container(const Machine& machine) {
  return machine.exists("/.dockerenv") || machine.exists("/run/.containerenv") ||
         !machine.variable("KUBERNETES_SERVICE_HOST").empty();
}

/// A limit of a control group, of version 2 or 1; nothing: none is set.
std::optional<uint64_t> group_limit(const Machine& machine, const std::string& v2,
                                    const std::string& v1) {
  const auto second = machine.number("/sys/fs/cgroup/" + v2);
  const auto found = second ? second : machine.number("/sys/fs/cgroup/" + v1);
  constexpr uint64_t kNone = uint64_t{1} << 60;  // version 1 has a huge number instead
  return found && *found < kNone ? found : std::nullopt;
}

/// How many numbers "0-3,8" has.
size_t count_of(const std::string& list) {
  size_t count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const long first = std::atol(part.c_str());
    const long last = dash == std::string::npos ? first : std::atol(part.c_str() + dash + 1);
    if (first >= 0 && last >= first && last < kMaxProcessors) {
      count += static_cast<size_t>(last - first + 1);
    }
  }
  return count;
}

}  // namespace

void check_sharing(const Machine& machine, Findings& findings) {
  const auto boot = machine.line("/proc/sys/kernel/random/boot_id");
  const std::string net = machine.link("/proc/self/ns/net");
  if (!boot || net.empty()) {
    return findings.problem(
        "the boot id or the network namespace cannot be read: ranks cannot find out whether they "
        "share a machine",
        "mount /proc in the container");
  }
  findings.fine(
      fmt::format("boot id {}, {}: ranks that have both share memory by descriptors", *boot, net));
  if (in_container(machine)) {
    findings.note(
        fmt::format("this is a container: ranks in others share memory only with the same network "
                    "namespace ({}); CUDA IPC also needs the same {} and {}",
                    net, machine.link("/proc/self/ns/ipc"), machine.link("/proc/self/ns/pid")),
        "for ranks in several containers: --network=host, or --ipc=host --pid=host for CUDA IPC");
  }
}

void check_shm(const Machine& machine, Findings& findings) {
  const auto bytes = machine.file_system_bytes("/dev/shm");
  if (!bytes) {
    return findings.note("there is no /dev/shm: mscclc needs none, NCCL does",
                         "mount a tmpfs there: --shm-size=8g, or --ipc=host");
  }
  if (*bytes < kLeastShm) {
    return findings.note(fmt::format("/dev/shm has {}: mscclc needs none, NCCL and data loaders do",
                                     bytes_text(*bytes)),
                         "--shm-size=8g, or --ipc=host");
  }
  findings.fine(fmt::format("/dev/shm has {}", bytes_text(*bytes)));
}

void check_locked_memory(const Machine& machine, Findings& findings) {
  const auto bytes = limit(machine, "Max locked memory");
  if (!bytes) return findings.fine("not known");
  const std::string text = fmt::format("locked memory: {}", bytes_text(*bytes));
  if (*bytes == kUnlimited || !has_rdma(machine)) return findings.fine(text);
  findings.problem(text + "; InfiniBand and RoCE lock all memory that they send from",
                   "ulimit -l unlimited, or --ulimit memlock=-1 for a container, or "
                   "LimitMEMLOCK=infinity for a service");
}

void check_open_files(const Machine& machine, Findings& findings) {
  const auto files = limit(machine, "Max open files");
  if (!files) return findings.fine("not known");
  if (*files >= kLeastFiles) return findings.fine("open files are enough");
  findings.problem(fmt::format("{} open files: ranks of large jobs need more", *files),
                   "ulimit -n 65536, or --ulimit nofile=65536 for a container");
}

void check_cgroup(const Machine& machine, Findings& findings) {
  size_t limits = 0;
  const auto memory = group_limit(machine, "memory.max", "memory/memory.limit_in_bytes");
  if (memory) {
    ++limits;
    findings.note(fmt::format("the control group allows {} of memory", bytes_text(*memory)),
                  "raise it if jobs are killed: --memory, or resources.limits.memory");
  }
  const auto processes = group_limit(machine, "pids.max", "pids/pids.max");
  if (processes && *processes < kLeastProcesses) {
    ++limits;
    findings.problem(fmt::format("the control group allows {} processes and threads", *processes),
                     "--pids-limit=-1, or podPidsLimit");
  }
  std::string list = machine.line("/sys/fs/cgroup/cpuset.cpus.effective").value_or("");
  if (list.empty()) list = machine.line("/sys/fs/cgroup/cpuset/cpuset.cpus").value_or("");
  const size_t allowed = count_of(list);
  const size_t present = count_of(machine.line("/sys/devices/system/cpu/present").value_or(""));
  if (allowed > 0 && allowed < present) {
    ++limits;
    findings.note(fmt::format("the control group allows {} of {} processors", allowed, present),
                  "each rank has threads that poll: two processors a rank, or more with sockets");
  }
  if (limits == 0) findings.fine("no limit that matters");
}

}  // namespace mscclc::doctor
