#include "runtime/core/collectives/overlap.h"

#include <algorithm>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};
using Ranges = std::vector<Range>;

bool meet(const Range& a, const Range& b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

/// Empty, if the rank has no such side.
Range side_of_call(const CollectiveCall& call, Side side, uint32_t rank, uint32_t ranks) {
  const CollectiveInfo& kind = info(call.kind);
  if (kind.side(side).only_at_root && rank != call.root) return {};
  const auto begin = reinterpret_cast<uintptr_t>(side == Side::input ? call.input : call.output);
  const uint64_t bytes = call.count * info(call.dtype).bytes * (kind.has_rows(side) ? ranks : 1);
  return {begin, begin + bytes};
}

/// By rank, the rows that are empty, too.
Ranges rows_of_call(const CollectiveCall& call, Side side, uint32_t rank, uint32_t ranks) {
  const uint64_t width = info(call.dtype).bytes;
  const bool sends = side == Side::input;
  const auto& offsets = sends ? call.input_offsets : call.output_offsets;
  const auto begin = reinterpret_cast<uintptr_t>(sends ? call.input : call.output);
  Ranges rows;
  uint64_t next = 0;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    const uint64_t count = call.counts[sends ? rank * ranks + peer : peer * ranks + rank];
    const uintptr_t row = begin + (offsets.empty() ? next : offsets[peer]) * width;
    rows.push_back({row, row + count * width});
    next += count;
  }
  return rows;
}

bool any_meet(Ranges from, Ranges to) {
  for (Ranges* side : {&from, &to}) {
    std::erase_if(*side, [](const Range& r) { return r.begin == r.end; });
    std::ranges::sort(*side, {}, &Range::begin);
  }
  for (size_t i = 0, k = 0; i < from.size() && k < to.size();) {
    if (meet(from[i], to[k])) return true;
    from[i].end <= to[k].begin ? ++i : ++k;
  }
  return false;
}

}  // namespace

bool coincide(const CollectiveCall& call, uint32_t rank) {
  precondition(call.kind != CollectiveKind::alltoallv);
  const CollectiveInfo& kind = info(call.kind);
  const uint64_t row = rank * call.count * info(call.dtype).bytes;
  const bool rows_in = kind.has_rows(Side::input), rows_out = kind.has_rows(Side::output);
  return reinterpret_cast<uintptr_t>(call.input) + (rows_in && !rows_out ? row : 0) ==
         reinterpret_cast<uintptr_t>(call.output) + (rows_out && !rows_in ? row : 0);
}

bool overlap(const CollectiveCall& call, uint32_t rank, uint32_t ranks) {
  if (call.kind == CollectiveKind::barrier) return false;
  if (call.kind == CollectiveKind::alltoallv) {
    const Ranges from = rows_of_call(call, Side::input, rank, ranks),
                 to = rows_of_call(call, Side::output, rank, ranks);
    return from != to && any_meet(from, to);
  }
  return meet(side_of_call(call, Side::input, rank, ranks),
              side_of_call(call, Side::output, rank, ranks)) &&
         !(info(call.kind).can_alias && coincide(call, rank));
}

}  // namespace mscclc
