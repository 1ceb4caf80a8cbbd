#include "executor/compiled/cluster.h"

#include <algorithm>

namespace mscclc {
namespace {

using device::StepFamily;
using device::StepKind;

/// Threads of a CUDA block at least, and of a multiprocessor at most; blocks of a cluster at most.
constexpr uint32_t kLeastThreads = 128, kMostThreads = 1024, kMostBlocks = 8;
constexpr uint32_t kMultiprocessors = 128;  ///< of GPUs that have clusters, at least

/// May a result lie where threads read a value that they have in common? They meet in between.
bool may_overwrite(const rows::Function& function) {
  return std::ranges::any_of(function.outputs, [&](const rows::Stored& result) {
    return result.kind != rows::Kind::row &&
           std::ranges::count(function.params, result.kind, &rows::Stored::kind) != 0;
  });
}

/// May CUDA blocks share these steps? They send packets, then perhaps meet, then compute rows.
bool can_share(const CompiledCode& code) {
  size_t next = code.leading;
  const auto sends = [](const CompiledStep& step) { return step.kind == StepKind::move_packets; };
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
  uint32_t cluster = std::min(shape.threads() / kLeastThreads, kMostBlocks);
  cluster = std::min(cluster, std::max(kMultiprocessors / shape.blocks(), 2u));
  while (cluster > 1 &&
         (shape.threads() % (32 * cluster) != 0 ||
          resident_blocks(shape, cluster) * shape.threads() / cluster > kMostThreads)) {
    --cluster;
  }
  return std::max(cluster, 1u);
}

uint32_t resident_blocks(const CompiledShape& shape, uint32_t cluster) {
  return (shape.blocks() * cluster + kMultiprocessors - 1) / kMultiprocessors;
}

}  // namespace mscclc
