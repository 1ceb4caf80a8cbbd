// The table of checks: a function each, in the order in which they are shown.
#pragma once

#include <span>

#include "tools/doctor/findings.h"
#include "tools/doctor/machine.h"

namespace mscclc::doctor {

struct Check {
  const char* name;
  const char* what;  ///< that is looked at
  void (*run)(const Machine& machine, Findings& findings);
};

std::span<const Check> checks();
/// Runs all of them.
Findings examine(const Machine& machine);

// ---- GPUs (check_gpus.cc) ----
void check_driver(const Machine& machine, Findings& findings);
void check_gpus(const Machine& machine, Findings& findings);
void check_peers(const Machine& machine, Findings& findings);
void check_links(const Machine& machine, Findings& findings);
void check_fabric(const Machine& machine, Findings& findings);
void check_multicast(const Machine& machine, Findings& findings);
void check_clocks(const Machine& machine, Findings& findings);
// ---- what the system allows (check_host.cc) ----
void check_sharing(const Machine& machine, Findings& findings);
void check_shm(const Machine& machine, Findings& findings);
void check_locked_memory(const Machine& machine, Findings& findings);
void check_open_files(const Machine& machine, Findings& findings);
void check_cgroup(const Machine& machine, Findings& findings);
// ---- the network (check_network.cc) ----
void check_rdma(const Machine& machine, Findings& findings);
void check_dmabuf(const Machine& machine, Findings& findings);
// ---- libraries and settings (check_settings.cc) ----
void check_preload(const Machine& machine, Findings& findings);
void check_fallback(const Machine& machine, Findings& findings);
void check_variables(const Machine& machine, Findings& findings);

/// True if there is a GPU of NVIDIA in the machine, whether a driver knows it or not.
bool has_gpu(const Machine& machine);
/// True if there is a network device of InfiniBand or RoCE.
bool has_rdma(const Machine& machine);

}  // namespace mscclc::doctor
