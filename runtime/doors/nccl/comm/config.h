// ncclConfig_t of any version: append-only, with its size and version first. The size does not
// suffice to say which fields there are: some versions' fields took the place of padding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/doors/nccl/abi/abi.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {

/// The largest that we know, of 2.32.
inline constexpr size_t kMaxConfigBytes = 120;

/// Does a CTA policy have the bit NCCL_CTA_POLICY_ZERO? It takes precedence over the others.
inline bool is_zero_cta(int policy) { return (policy & 2) != 0; }

/// What a caller has set, copied: the caller's struct and its texts may go. An immutable value.
class Config {
 public:
  /// Nothing is set.
  Config();
  /// nullptr: nothing is set. nullopt: reported (a wrong magic, a value out of range).
  [[nodiscard]] static std::optional<Config> read(const ncclConfig_t* config);

  /// The value of a field; kNcclUndefinedInt: not set.
  int blocking() const;
  int max_ctas() const;
  int cta_policy() const;  ///< bits of NCCL_CTA_POLICY_…
  int graph_usage_mode() const;
  const std::string& name() const { return comm_name_; }
  /// What to warn a user of: fields that have no effect on plans, though the same setting as a
  /// variable has one, or is warned of. A variable that is set comes before its field.
  std::vector<std::string> without_effect(const Environment& environment) const;
  bool is_blocking() const { return blocking() != 0; }

  /// The same for the real NCCL, as the caller's version would give it. Valid while `this` is
  /// there, and not moved.
  ncclConfig_t* for_real(std::array<uint8_t, kMaxConfigBytes>& bytes) const;

 private:
  std::array<uint8_t, kMaxConfigBytes> bytes_{};  ///< with no texts
  std::string net_name_, comm_name_;
  bool has_net_name_ = false, has_comm_name_ = false;
};

}  // namespace mscclc::nccl
