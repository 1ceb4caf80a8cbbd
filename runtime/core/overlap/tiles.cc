#include "runtime/core/overlap/tiles.h"

#include <algorithm>

#include "ir/program/flag_regions.h"
#include "ir/support/precondition.h"

namespace mscclc::overlap {
namespace {

/// Bytes of the input or output that a flag is for.
struct FlagBytes {
  uint64_t begin, end;
};

FlagBytes bytes_of(const Program& plan, uint32_t rank, const Chunking& chunking, uint32_t flag) {
  const FlagRegion region = flag_region(plan, rank, 0, flag);
  const Side side = plan.flags[0].of_output ? Side::output : Side::input;
  const uint32_t last = region.first + region.count - 1;
  return {chunking.offset(side, rank, region.first),
          chunking.offset(side, rank, last) + chunking.length(side, rank, last)};
}

bool meets(const Tile& tile, const FlagBytes& flag, uint64_t row_bytes) {
  return flag.begin < flag.end && tile.row * row_bytes < flag.end &&
         flag.begin < (tile.row + tile.rows) * row_bytes;
}

}  // namespace

std::vector<Tile> make_tiles(OverlapKind kind, uint64_t m, uint32_t ranks, uint32_t rank,
                             uint32_t chunks) {
  if (chunks == 0) return {{.row = 0, .rows = m}};
  std::vector<Tile> tiles;
  const uint64_t all = uint64_t{ranks} * chunks;
  for (uint32_t i = 0; i < ranks; ++i) {
    const uint32_t part = (rank + i + (info(kind).sums ? 1 : 0)) % ranks;
    for (uint32_t c = 0; c < chunks; ++c) {
      const uint64_t t = uint64_t{part} * chunks + c;
      const uint64_t begin = m * t / all, end = m * (t + 1) / all;
      if (begin < end) tiles.push_back({.row = begin, .rows = end - begin, .own = part == rank});
    }
  }
  return tiles;
}

void assign_flags(const Program& plan, uint32_t rank, const OverlapConfig& config,
                  std::vector<Tile>& tiles) {
  precondition(plan.flags.size() == 1);
  const uint64_t bytes = message_bytes(config);
  const uint64_t row_bytes = bytes / config.m;
  const Chunking chunking(plan.contract, bytes / Chunking::parts_of_message(plan.contract),
                          plan.granule(message_dtype(config)));
  for (uint32_t flag = 0; flag < plan.flags[0].count; ++flag) {
    const FlagBytes region = bytes_of(plan, rank, chunking, flag);
    const auto needs = [&](const Tile& tile) { return meets(tile, region, row_bytes); };
    if (plan.flags[0].of_output) {
      // What is this rank's own the GEMM reads where the caller has it.
      const auto first =
          std::ranges::find_if(tiles, [&](const Tile& tile) { return !tile.own && needs(tile); });
      if (first != tiles.end()) first->await.push_back(flag);
    } else {
      const auto last = std::find_if(tiles.rbegin(), tiles.rend(), needs);
      (last != tiles.rend() ? *last : tiles.back()).raise.push_back(flag);
    }
  }
}

}  // namespace mscclc::overlap
