// How GEMMs are cut: in which order a rank makes tiles, and that each waits for, and completes, all
// flags that its rows have bytes of, whatever granules the plan's chunks begin at.
#include <catch2/catch.hpp>
#include <set>

#include "ir/program/flag_regions.h"
#include "runtime/core/overlap/tiles.h"

namespace mscclc {
namespace {

using overlap::make_tiles;
using overlap::Tile;

std::string rows_of(const std::vector<Tile>& tiles) {
  std::string text;
  for (const Tile& tile : tiles) {
    text += std::to_string(tile.row) + "+" + std::to_string(tile.rows) + (tile.own ? "own " : " ");
  }
  return text;
}

TEST_CASE("a rank multiplies its own part first where it gathers, and last where it adds up") {
  CHECK(rows_of(make_tiles(OverlapKind::allgather_gemm, 12, 3, 1, 1)) == "4+4own 8+4 0+4 ");
  CHECK(rows_of(make_tiles(OverlapKind::gemm_reducescatter, 12, 3, 1, 1)) == "8+4 0+4 4+4own ");
  CHECK(rows_of(make_tiles(OverlapKind::gemm_allreduce, 5, 2, 0, 2)) == "2+1 3+2 0+1own 1+1own ");
  CHECK(rows_of(make_tiles(OverlapKind::alltoall_gemm, 2, 2, 0, 3)) == "0+1own 1+1 ");
  CHECK(rows_of(make_tiles(OverlapKind::alltoall_gemm, 6, 2, 0, 0)) == "0+6 ");
}

/// Rows that a flag has bytes of: from, and up to.
std::pair<uint64_t, uint64_t> rows_of_flag(const Program& plan, uint32_t rank,
                                           const OverlapConfig& config, uint32_t flag) {
  const uint64_t bytes = overlap::message_bytes(config), row = bytes / config.m;
  const Chunking chunking(plan.contract, bytes / Chunking::parts_of_message(plan.contract),
                          plan.granule(overlap::message_dtype(config)));
  const FlagRegion region = flag_region(plan, rank, 0, flag);
  const Side side = plan.flags[0].of_output ? Side::output : Side::input;
  uint64_t first = bytes, last = 0;
  for (uint32_t c = region.first; c < region.first + region.count; ++c) {
    const uint64_t begin = chunking.offset(side, rank, c);
    const uint64_t length = chunking.length(side, rank, c);
    if (length == 0) continue;
    first = std::min(first, begin / row);
    last = std::max(last, (begin + length + row - 1) / row);
  }
  return {first, std::max(first, last)};
}

/// What is wrong with the tiles of a rank; "": nothing.
std::string fault_of(const Program& plan, uint32_t rank, const OverlapConfig& config,
                     const std::vector<Tile>& tiles) {
  std::set<uint64_t> made;
  std::set<uint32_t> awaited, raised;
  for (const Tile& tile : tiles) {
    for (const uint32_t flag : tile.await) {
      if (!awaited.insert(flag).second) return "a flag is awaited twice";
    }
    for (uint32_t flag = 0; flag < plan.flags[0].count && plan.flags[0].of_output; ++flag) {
      const auto [first, last] = rows_of_flag(plan, rank, config, flag);
      const bool meets = first < tile.row + tile.rows && tile.row < last;
      if (meets && !tile.own && !awaited.contains(flag)) return "a tile does not wait";
    }
    for (uint64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      if (!made.insert(row).second) return "a row is made twice";
    }
    for (const uint32_t flag : tile.raise) {
      if (!raised.insert(flag).second) return "a flag is raised twice";
      const auto [first, last] = rows_of_flag(plan, rank, config, flag);
      for (uint64_t row = first; row < last; ++row) {
        if (!made.contains(row)) return "a flag is raised too early";
      }
    }
  }
  if (made.size() != config.m) return "rows are left out";
  return plan.flags[0].of_output || raised.size() == plan.flags[0].count ? ""
                                                                         : "a flag is left out";
}

TEST_CASE("flags go with the rows that they have bytes of, for odd shapes and instances") {
  const auto programs = builtin_overlap_programs();
  for (const OverlapKind kind : {OverlapKind::allgather_gemm, OverlapKind::gemm_reducescatter,
                                 OverlapKind::gemm_allreduce, OverlapKind::alltoall_gemm}) {
    for (const uint32_t ranks : {2u, 3u}) {
      for (const uint32_t chunks : {1u, 3u, 4u}) {
        for (const uint32_t instances : {1u, 2u}) {
          Diagnostics diagnostics;
          const auto plan = programs->program({.name = std::string(name(kind)),
                                               .ranks = ranks,
                                               .chunks = chunks,
                                               .instances = instances},
                                              diagnostics);
          REQUIRE(plan != nullptr);
          for (const uint64_t rows : {1, 2, 7, 40}) {
            for (const uint64_t width : {1, 11, 24}) {
              const uint64_t odd = kind == OverlapKind::gemm_allreduce ? 1 : 0;
              const OverlapConfig config{
                  .kind = kind, .m = rows * ranks + odd, .k = width, .n = {width}};
              for (uint32_t rank = 0; rank < ranks; ++rank) {
                auto tiles = make_tiles(kind, config.m, ranks, rank, chunks);
                assign_flags(*plan, rank, config, tiles);
                INFO(name(kind) << " of " << ranks << " ranks, " << chunks << " chunks, "
                                << instances << " instances, " << config.m << " x " << width);
                CHECK(fault_of(*plan, rank, config, tiles) == "");
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mscclc
