#include "runtime/choice/overlap/kinds.h"

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc::overlap {
namespace {

constexpr KindInfo kKinds[] = {
    {OverlapKind::allgather_gemm, CollectiveKind::allgather, false, 2},
    {OverlapKind::gemm_reducescatter, CollectiveKind::reducescatter, true, 2},
    {OverlapKind::gemm_allreduce, CollectiveKind::allreduce, true, 3},
    {OverlapKind::alltoall_gemm, CollectiveKind::alltoall, false, 2},
};

}  // namespace

std::span<const KindInfo> kinds() { return kKinds; }

const KindInfo* find_kind(OverlapKind kind) {
  const auto found = std::ranges::find(kKinds, kind, &KindInfo::kind);
  return found == std::end(kKinds) ? nullptr : found;
}

const KindInfo* find_kind(std::string_view name) {
  const auto found = std::ranges::find_if(
      kKinds, [&](const KindInfo& one) { return mscclc::name(one.kind) == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const KindInfo& one : kKinds) names.emplace_back(name(one.kind));
  return names;
}

const KindInfo& info(OverlapKind kind) {
  precondition([&] { return find_kind(kind) != nullptr; });
  return *find_kind(kind);
}

uint32_t least_blocks(OverlapKind kind, std::string_view backend, uint32_t chunks) {
  return backend == kCopyEngine ? 1 : info(kind).blocks_a_chunk * chunks;
}

}  // namespace mscclc::overlap
