#include "executor/compiled/cluster.h"

#include <algorithm>

namespace mscclc {
namespace {

using device::StepFamily;
using device::StepKind;

/// Threads of a CUDA block at least; blocks of a cluster at most.
constexpr uint32_t kLeastThreads = 128, kMostBlocks = 8;
constexpr uint32_t kMultiprocessors = 128;  ///< of an H100 or H200, or fewer

/// May a result lie where threads read a value that they have in common? They meet in between.
bool may_overwrite(const rows::Function& function) {
  return std::ranges::any_of(function.outputs, [&](const rows::Stored& result) {
    return result.kind != rows::Kind::row &&
           std::ranges::count(function.params, result.kind, &rows::Stored::kind) != 0;
  });
}

/// Does a step send packets, and store nothing else?
bool sends(const CompiledStep& step) {
  if (step.kind != StepKind::move_packets) return false;
  for (uint32_t i = 0; i < step.operands(); ++i) {
    const bool target = i % (step.dsts + step.srcs) < step.dsts;
    if (target && (step.places[i] & device::kPlacePackets) == 0) return false;
  }
  return true;
}

/// May CUDA blocks share these steps? They send packets, then perhaps meet, then compute rows.
bool can_share(const CompiledCode& code) {
  size_t next = code.leading;
  if (!std::all_of(code.steps.begin(), code.steps.begin() + code.leading, sends)) return false;
  if (next < code.steps.size() && code.steps[next].kind == StepKind::sync) ++next;
  return std::all_of(code.steps.begin() + next, code.steps.end(), [](const CompiledStep& step) {
    return info(step.kind).family == StepFamily::rows;
  });
}

}  // namespace

uint32_t cluster_of(const CompiledShape& shape, const Program& program) {
  if (!shape.has_rows() || shape.posts() || shape.counts()) return 1;
  if (!std::ranges::all_of(shape.codes(), can_share)) return 1;
  if (std::ranges::any_of(program.functions, may_overwrite)) return 1;
  if (shape.blocks() > kMultiprocessors) return 1;  // blocks share one each already
  uint32_t cluster = std::min(shape.threads() / kLeastThreads, kMostBlocks);
  cluster = std::min(cluster, std::max(kMultiprocessors / shape.blocks(), 2u));
  while (cluster > 1 && shape.threads() % (32 * cluster) != 0) --cluster;
  return std::max(cluster, 1u);
}

}  // namespace mscclc
