// A sum that is handed to a row function before it is stored: row by row, on the simulator. All
// sources of a row are read before a result of it is stored.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "executor/cpu/tiles.h"
#include "executor/interpreter/handlers_reduce.h"
#include "executor/rows/externals.h"

namespace mscclc {

/// Bytes of data in what a stretch counts.
template <PacketFormat F>
inline constexpr uint32_t kCounted = F == PacketFormat::none ? 1 : device::Format<F>::kData;

/// Calls fn(piece) for every piece of a stretch, `most` units or as many as fit into a tile.
template <PacketFormat F, class Fn>
void each_tile(const device::FrameStretch& s, Fn fn, uint64_t most = kTileBytes / kCounted<F>) {
  for (uint64_t at = s.skip; at < s.skip + s.count;) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(most, s.skip + s.count - at));
    fn(device::piece_of<F>(s, at, n));
    at += n;
  }
}

/// What a reduction of a row runs on instead of machine M: it reads as M does, and puts the sum
/// into the room that it is given, whatever the destinations are.
template <class M>
class RowSum {
 public:
  using Tile = typename M::Tile;
  using Sums = typename M::Sums;
  static constexpr uint32_t kTogether = M::kTogether;

  /// `begin`: where the row begins in its run, in bytes of data.
  RowSum(M& machine, std::vector<uint8_t>& row, uint64_t begin)
      : machine_(machine), row_(row), begin_(begin) {}

  auto arith(const device::DeviceOp& op) const { return machine_.arith(op); }
  auto tree_sums(const TileArith& arith, uint32_t bytes) {
    return machine_.tree_sums(arith, bytes);
  }
  auto exact_sums(const TileArith& arith, uint32_t bytes) {
    return machine_.exact_sums(arith, bytes);
  }
  uint8_t* base(uint32_t index) const { return machine_.base(index); }
  template <PacketFormat F, class Fn>
  void for_each_piece(const device::FrameStretch& s, Fn fn) {
    each_tile<F>(s, fn);
  }
  template <PacketFormat F>
  void fetch(const device::Source* sources, uint32_t n, const device::Piece& piece, Tile* tiles) {
    machine_.template fetch<F>(sources, n, piece, tiles);
  }
  void store(uint8_t*, const device::Piece& piece, const Tile& tile) { keep(piece, tile); }
  template <PacketFormat F>
  void write_packets(uint8_t*, const device::Piece& piece, const Tile& tile) {
    keep(piece, tile);
  }
  void empty_packets(uint8_t* units, uint32_t bytes) { machine_.empty_packets(units, bytes); }

 private:
  void keep(const device::Piece& piece, const Tile& tile) {
    std::memcpy(row_.data() + (piece.offset - begin_), tile.bytes, piece.payload);
  }

  M& machine_;
  std::vector<uint8_t>& row_;
  const uint64_t begin_;
};

/// Adds up the sources of one stretch in the way of its op.
template <PacketFormat F, class M>
void reduce_one_stretch(M& m, const device::Frame& frame, const device::DeviceOp& op,
                        const device::FrameStretch& s) {
  const auto arith = m.arith(op);
  if ((op.flags & device::kTree) != 0) return device::reduce_tree<F>(m, frame, s, arith);
  if ((op.flags & device::kExact) != 0 && arith.adds_exactly()) {
    return device::reduce_stretch_exactly<F>(m, frame, s, arith);
  }
  device::reduce_stretch<F>(m, frame, s, arith);
}

/// Adds up the row `s` of a run into `sum`. A row that lies in the slots only, beyond the data, is
/// waited for like the others.
template <PacketFormat F, class M>
void sum_up_row(M& m, const device::Frame& frame, const device::DeviceOp& op,
                const device::FrameStretch& s, std::vector<uint8_t>& sum) {
  RowSum<M> row(m, sum, s.skip * kCounted<F>);
  reduce_one_stretch<F>(row, frame, op, s);
}

/// Calls fn(tag) with the format, which may be none.
template <class Fn>
void with_any_format(PacketFormat format, Fn fn) {
  if (format == PacketFormat::none) return fn(device::FormatTag<PacketFormat::none>{});
  device::with_format(format, fn);
}

/// Puts what a row has become where the op's destinations are.
template <PacketFormat F, class M>
void store_row(M& m, const device::Frame& frame, const device::FrameStretch& s,
               const std::vector<uint8_t>& row) {
  const uint64_t begin = s.skip * kCounted<F>;
  const auto store = [&](const device::Piece& piece) {
    typename M::Tile tile;
    std::memcpy(tile.bytes, row.data() + (piece.offset - begin), piece.payload);
    device::scatter<F>(m, frame, s, piece, tile);
  };
  // A strand writes packets one by one.
  each_tile<F>(s, store, F == PacketFormat::none ? kTileBytes : 1);
}

}  // namespace mscclc
