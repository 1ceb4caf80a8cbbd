// Checks of libraries that a job would load, and of its settings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostics/printable.h"
#include "runtime/doors/nccl/variables/variables.h"
#include "runtime/support/environment/environment.h"
#include "tools/doctor/checks.h"

namespace mscclc::doctor {
namespace {

/// A text that only our library has: it reads this variable.
constexpr std::string_view kOurMark = "MSCCLC_NCCL_COMM";

std::vector<std::string> parts_of(const std::string& list, std::string_view separators) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find_first_of(separators, at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// The libnccl.so.2 that is preloaded; empty: none.
std::string preloaded(const Machine& machine) {
  for (const std::string& file : parts_of(machine.variable("LD_PRELOAD"), ": ")) {
    if (file.substr(file.rfind('/') + 1).starts_with("libnccl.so")) return file;
  }
  return "";
}

std::vector<std::string> system_folders() {
  return {"/usr/lib/x86_64-linux-gnu",
          "/usr/lib/aarch64-linux-gnu",
          "/usr/lib64",
          "/lib64",
          "/usr/lib",
          "/usr/local/cuda/lib64",
          "/usr/local/lib"};
}

std::string version_of(const Machine& machine, const std::string& path) {
  const std::string target = machine.link(path);
  const size_t at = target.find(".so.");
  return at == std::string::npos ? "" : " (" + target.substr(at + 4) + ")";
}

void report_unknown(const Machine& machine, Findings& findings) {
  const Environment environment{Environment::Values(machine.variables)};
  Diagnostics diagnostics;
  (void)environment.check_ours(diagnostics);
  for (const Diagnostic& d : diagnostics.all()) {
    findings.problem(d.message, "'mscclc env' shows what is allowed");
  }
  Diagnostics unknown;
  environment.warn_of_unknown(unknown);
  for (const Diagnostic& d : unknown.all()) {
    findings.problem(d.message, "correct its name, or unset it; 'mscclc env' lists all");
  }
}

/// A variable that names what must be there, or a file that is written into a folder that must be.
struct NamedPlace {
  const char* variable;
  bool written;
  const char* separators = "";  ///< between several
  const char* no_place = "";    ///< a value that is none
};

constexpr std::array kPlaces = {
    NamedPlace{"MSCCLC_PLAN_PATH", false, ":"},
    NamedPlace{"MSCCLC_LIBRARY", false},
    NamedPlace{"MSCCLC_KERNEL_PATH", false},
    NamedPlace{"MSCCLC_TUNER_FILE", false},
    NamedPlace{"MSCCLC_NVRTC", false, "", "none"},
    NamedPlace{"MSCCLC_TRACE", true},
    NamedPlace{"MSCCLC_FLIGHT_FILE", true, "", "none"},
    NamedPlace{"MSCCLC_DEBUG_FILE", true},
    NamedPlace{"NCCL_DEBUG_FILE", true},
};

void report_places(const Machine& machine, Findings& findings) {
  for (const NamedPlace& place : kPlaces) {
    for (std::string path : parts_of(machine.variable(place.variable), place.separators)) {
      const size_t slash = path.rfind('/');
      if (path == place.no_place || slash == path.npos) continue;  // beside the program, or found
      if (place.written) path.resize(std::max<size_t>(slash, 1));
      if (path.find('%') != path.npos || machine.exists(path)) continue;  // %h, %p, %r
      findings.problem(
          fmt::format("{} names {}, which is not there", place.variable,
                      beginning(printable_line(path), 80)),
          place.written ? "make the folder, or correct it" : "correct it, or unset it");
    }
  }
}

/// Whose interfaces are there: prefixes, after '^' those that are not taken, after '=' whole names.
void report_interfaces(const Machine& machine, Findings& findings) {
  const std::string value = machine.variable("MSCCLC_SOCKET_IFNAME");
  if (value.empty() || value.starts_with('^')) return;
  const bool whole = value.starts_with('=');
  const auto there = machine.list("/sys/class/net");
  const auto names = parts_of(value.substr(whole ? 1 : 0), ",");
  const bool some = std::ranges::any_of(names, [&](const std::string& name) {
    return std::ranges::any_of(
        there, [&](const std::string& one) { return whole ? one == name : one.starts_with(name); });
  });
  if (some) return;
  findings.problem(fmt::format("MSCCLC_SOCKET_IFNAME={}: no network interface has such a name",
                               beginning(printable_line(value), 80)),
                   fmt::format("name one of {}", fmt::join(there, ", ")));
}

/// What says which rank a process is, of how many, of which job.
void report_ranks(const Machine& machine, Findings& findings) {
  const std::string id = machine.variable("MSCCLC_ID");
  if (!id.empty() && !id.starts_with("mscclc1/")) {  // it is secret
    findings.problem("MSCCLC_ID is no unique id, mscclc1/ADDRESS/PORT/SECRET",
                     "take one that mscclc_unique_id() has made, or unset it");
  }
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [rank, size] :
       {Pair{"MSCCLC_RANK", "MSCCLC_WORLD_SIZE"}, {"RANK", "WORLD_SIZE"}}) {
    const std::string r = machine.variable(rank), n = machine.variable(size);
    if (r.empty() != n.empty()) {
      findings.problem(
          fmt::format("{} is set without {}", r.empty() ? size : rank, r.empty() ? rank : size),
          "set both, or neither");
    } else if (!r.empty() && std::atoll(r.c_str()) >= std::atoll(n.c_str())) {
      findings.problem(
          fmt::format("{}={} with {}={}: ranks are counted from 0", rank,
                      beginning(printable_line(r), 20), size, beginning(printable_line(n), 20)),
          "correct one of them");
    }
  }
}

/// NCCL's own variables: those that no NCCL has, and those that have no effect on plans.
void report_nccl(const Machine& machine, Findings& findings) {
  const auto known = nccl::nccl_variables();
  for (const auto& [name, value] : machine.variables) {
    if (!name.starts_with("NCCL_")) continue;
    const auto row = std::ranges::find(known, name, &nccl::NcclVariable::name);
    if (row == known.end()) {
      findings.note(fmt::format("{} is set, and is no variable of NCCL that mscclc knows",
                                beginning(printable_line(name), 80)),
                    "check its name");
    } else if (row->use == nccl::VariableUse::warned && value != row->usual) {
      findings.note(
          fmt::format("{}={}: {}", name, beginning(printable_line(value), 80), row->remark),
          "docs/nccl.md says what each variable does");
    }
  }
}

}  // namespace

void check_preload(const Machine& machine, Findings& findings) {
  const std::string file = preloaded(machine);
  const std::string audit = machine.variable("LD_AUDIT");
  if (file.empty()) {
    if (audit.find("libmscclc_audit.so") != std::string::npos) {
      return findings.fine("LD_AUDIT has libmscclc_audit.so: programs that load NCCL get ours");
    }
    return findings.fine("no libnccl.so.2 is preloaded: programs from this shell use NVIDIA's");
  }
  if (file.find('/') == std::string::npos) {
    return findings.note(fmt::format("LD_PRELOAD has '{}' without a folder: which it is depends on "
                                     "the loader",
                                     file),
                         "write its whole path");
  }
  if (!machine.exists(file)) {
    return findings.problem(fmt::format("LD_PRELOAD names {}, which is not there", file),
                            "correct the path: the loader ignores it silently");
  }
  if (machine.file_has(file, kOurMark)) {
    return findings.fine(fmt::format("{} is ours", file));
  }
  findings.problem(fmt::format("LD_PRELOAD has {}, which is not ours", file),
                   "preload lib/mscclc/libnccl.so.2 of the package");
}

void check_fallback(const Machine& machine, Findings& findings) {
  const std::string named = machine.variable("MSCCLC_NCCL");
  if (!named.empty()) {
    if (!machine.exists(named)) {
      return findings.problem(fmt::format("MSCCLC_NCCL names {}, which is not there", named),
                              "correct it, or unset it");
    }
    if (machine.file_has(named, kOurMark)) {
      return findings.problem(fmt::format("MSCCLC_NCCL names {}, which is our own library", named),
                              "name NVIDIA's, or unset it");
    }
    return findings.fine(fmt::format("{} (MSCCLC_NCCL)", named));
  }
  const std::string ours = preloaded(machine);
  const size_t slash = ours.rfind('/');
  if (slash != std::string::npos) {
    const std::string beside = ours.substr(0, slash) + "/libnccl_real.so.2";
    if (machine.exists(beside)) return findings.fine(beside);
  }
  for (const std::string& folder : system_folders()) {
    const std::string file = folder + "/libnccl.so.2";
    if (machine.exists(file)) {
      return findings.fine(fmt::format("{}{}, unless a wheel has one beside PyTorch, CuPy or JAX",
                                       file, version_of(machine, file)));
    }
  }
  const char* text =
      "no NCCL in the folders of the system: only a wheel's beside PyTorch, CuPy or JAX";
  if (!has_gpu(machine)) return findings.fine(text);
  findings.note(text, "install libnccl2, or name one: MSCCLC_NCCL=/path/libnccl.so.2");
}

void check_variables(const Machine& machine, Findings& findings) {
  std::vector<std::string> set;
  for (const auto& [name, value] : machine.variables) {
    if (name.starts_with("MSCCLC_") || name.starts_with("NCCL_")) {
      set.push_back(beginning(printable_line(name), 80));
    }
  }
  findings.fine(set.empty() ? "none is set" : fmt::format("set: {}", fmt::join(set, ", ")));
  report_unknown(machine, findings);
  report_nccl(machine, findings);
  report_places(machine, findings);
  report_interfaces(machine, findings);
  report_ranks(machine, findings);
}

}  // namespace mscclc::doctor
