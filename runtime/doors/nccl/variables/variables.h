// NCCL's environment variables and configuration files, as libnccl.so.2 of ours takes them: what
// Environment::of_process() finds there is what NCCL would, and settings of ours that are not set
// come from NCCL's (nccl_variables.def). Other libraries of ours know nothing of it.
//
// Thread safety: all of it, from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {

enum class VariableUse : uint8_t { read, mapped, warned, left };

struct NcclVariable {
  std::string_view name;
  VariableUse use;
  std::string_view ours;    ///< mapped: to what
  std::string_view usual;   ///< warned: the value that needs no warning
  std::string_view remark;  ///< mapped: how; warned: why it has no effect
};
/// All of them, in the order of the table.
std::span<const NcclVariable> nccl_variables();

/// What the process's environment and NCCL's configuration files set, and no more.
Environment::Values set_values();
/// Adds the variables of NCCL's configuration files that `values` does not have, then those of ours
/// that are not set and that NCCL's stand for. What Environment::of_process() calls in libnccl.
void complete(Environment::Values& values);

/// What to warn a user of in set_values(): values that count as not set, as they, or what they map
/// to, are not allowed, and variables that have no effect on plans.
std::vector<std::string> warnings_of(const Environment::Values& set);

/// Which of our settings come from NCCL's: "MSCCLC_IB_TC=3 (NCCL_IB_TC)".
std::vector<std::string> origins(const Environment::Values& set);
/// The same of those that a text names, for its end: " (MSCCLC_IB_TC is NCCL_IB_TC here)". Empty:
/// none.
std::string origins_in(std::string_view text, const Environment::Values& set);

/// NCCL_CTA_POLICY: bits of NCCL_CTA_POLICY_…. nullopt: it is not set, or counts as not set.
std::optional<int> cta_policy(const Environment& environment);

/// Whether NCCL_P2P_DISABLE or NCCL_P2P_LEVEL keeps GPUs from each other's memory.
bool forbids_peers(const Environment& environment);

}  // namespace mscclc::nccl
