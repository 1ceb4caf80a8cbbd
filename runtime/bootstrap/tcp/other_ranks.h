// Ranks of another job of a hub's name, on this machine, that are still to hear that there are two:
// without this hub they could still meet ranks of its job.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace mscclc {

/// Thread safety: one thread at a time.
class OtherRanks {
 public:
  /// All ranks of the hub's job have come now.
  void all_came();
  /// Was the process there when all ranks came? If it is none of them, it belongs to another job of
  /// this name, or one of those that came does.
  bool began_before_all_came(std::optional<int32_t> process) const;

  void await(std::vector<int32_t> processes) { awaited_ = std::move(processes); }
  bool all_heard() const { return awaited_.empty(); }
  void has_heard(std::optional<int32_t> process);
  /// Forgets those whose processes have ended.
  void forget_ended();

 private:
  std::vector<int32_t> awaited_;
  uint64_t complete_since_ = 0;  ///< in ticks (proc.h)
};

}  // namespace mscclc
