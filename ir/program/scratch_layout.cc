#include "ir/program/scratch_layout.h"

#include <algorithm>

namespace mscclc {
namespace {

/// Is the longest chunk, of which scratch is made, equally long for every largest message?
bool same_chunks(const Program& a, const Program& b) {
  const Contract &x = a.contract, &y = b.contract;
  const bool rows_x = x.kind == CollectiveKind::alltoallv,
             rows_y = y.kind == CollectiveKind::alltoallv;
  if (a.launch.align != b.launch.align || rows_x != rows_y) return false;
  if (x.part_chunks() != y.part_chunks()) return false;
  if (rows_x) return x.counts == y.counts;
  return Chunking::parts_of_message(x) == Chunking::parts_of_message(y);
}

}  // namespace

bool same_scratch(const Program& a, uint32_t rank_a, const Program& b, uint32_t rank_b) {
  const auto alike = [](const Buffer& x, const Buffer& y) {
    return x.chunks == y.chunks && x.copies == y.copies && x.packets == y.packets &&
           x.units == y.units && x.unit == y.unit && x.form == y.form;
  };
  return std::ranges::equal(a.ranks[rank_a].buffers, b.ranks[rank_b].buffers, alike) &&
         a.select.sizes.max == b.select.sizes.max && same_chunks(a, b);
}

}  // namespace mscclc
