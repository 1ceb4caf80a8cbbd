// NCCL's tuner files: the lines that NVIDIA's example tuner plugin reads, as a selector of plans.
//
//   # collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
//   allreduce,0,65535,small.json,-1,-1,1,8,-1,-1
//   allreduce,65536,4294967295,ring,simple,-1,1,8
//
// Blanks around a field do not count, nor does what follows a '#'. In a file without sizes of 4 GiB
// and more, 4294967295 as the larger size stands for no end, as files that were written for 32 bits
// mean it.
//
// Where NCCL's line has an algorithm, ours may have a registered plan. A call gets the first line
// that fits it: its plan, or, where the line names one of NCCL's algorithms, no plan, so that the
// call goes to NCCL. Calls that no line fits are picked for as usual.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_registry.h"

namespace mscclc {

/// As `max`: no end.
inline constexpr uint64_t kTunerNoEnd = ~uint64_t{0};

/// One line. nullopt: any (-1 in the file).
struct TunerLine {
  CollectiveKind kind = CollectiveKind::allreduce;
  uint64_t min = 0, max = kTunerNoEnd;  ///< bytes, both included
  std::string algorithm = {};           ///< a plan's name, or one of NCCL's algorithms
  std::string protocol = "-1";          ///< NCCL's; plans have none
  std::optional<uint32_t> channels = {}, nodes = {}, ranks = {}, pipe_ops = {}, registered = {};
  bool operator==(const TunerLine&) const = default;

  /// Whatever `pipe_ops` says: a request is one operation, and NCCL counts those of a group.
  bool fits(const PlanRequest& request) const;
  /// True if the algorithm is NCCL's own, or any.
  bool is_nccl() const;
};

/// Reads a file's text. nullopt: reported; every error (tuner-line) names file and line.
[[nodiscard]] std::optional<std::vector<TunerLine>> read_tuner_csv(std::string_view text,
                                                                   const std::string& name,
                                                                   Diagnostics& diagnostics);
/// The text of a file with these lines: read_tuner_csv() gives them back, except that a `max` of
/// 4294967295 becomes one less where no line has a larger size. Errors (tuner-line): a
/// collective that NCCL's files do not know, a plan's name with a comma, blank or '#' in it.
[[nodiscard]] std::optional<std::string> write_tuner_csv(std::span<const TunerLine> lines,
                                                         Diagnostics& diagnostics);
/// What the lines select.
PlanSelector tuner_selector(std::vector<TunerLine> lines);

}  // namespace mscclc
