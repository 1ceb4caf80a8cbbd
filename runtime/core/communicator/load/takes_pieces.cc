// Which plans can take the pieces of a row that lie apart in the caller's buffers.
#include <optional>

#include "executor/lower.h"
#include "ir/program/program.h"
#include "runtime/api/communicator.h"
#include "runtime/core/communicator/call/placement.h"

namespace mscclc {
namespace {

constexpr Side kSideOf[] = {Side::input, Side::output};

}  // namespace

// Rows of staging follow one another, those of the caller do not: an op that addresses a side at
// several ranks must find them alike.
bool takes_pieces(const Program& plan, const LoadOptions& options) {
  const Contract& contract = plan.contract;
  if (contract.even_only || contract.columns != 0) return false;
  switch (contract.kind) {
    case CollectiveKind::none:
    case CollectiveKind::custom:
    case CollectiveKind::alltoallv:
    case CollectiveKind::barrier:
      return false;
    default:
      break;
  }
  if (options.zero_copy) return true;
  const PeerAccess access(plan);
  for (const uint32_t side : {kInput, kOutput}) {
    if (!contract.info().has_rows(kSideOf[side])) continue;
    std::optional<bool> staged;
    for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
      if (contract.chunk_count(kSideOf[side], r) == 0) continue;
      if (staged && *staged != access.stages(r, side)) return false;
      staged = access.stages(r, side);
    }
  }
  return true;
}

}  // namespace mscclc
