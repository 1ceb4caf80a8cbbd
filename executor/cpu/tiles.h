// What machines on CPUs move and add up at once: a tile of elements, and its sums.
#pragma once

#include <memory>

#include "executor/cpu/arith.h"
#include "executor/interpreter/exact.h"
#include "executor/interpreter/trees.h"

namespace mscclc {

inline constexpr uint32_t kTileBytes = 1920;  // 120 units of 16 bytes, 16 lines of 120

struct CpuTile {
  alignas(64) uint8_t bytes[kTileBytes];
};
struct CpuSums {
  alignas(64) uint8_t bytes[kTileBytes * 8];  // one-byte elements as f64 or i64
};

/// One reduction on the call's data type.
struct TileArith {
  RowArith rows;
  uint32_t element, divisor;
  ExactArith exact = {};  ///< of an op that adds up exactly

  /// What an op or a step does in a call: a Call, or a launch of one.
  template <class AnyOp, class AnyCall>
  static TileArith of(const AnyOp& op, const AnyCall& call) {
    const ReduceOp reduce = op.reduce == ReduceOp::call ? call.reduce : op.reduce;
    const bool divides = reduce == ReduceOp::avg && (op.flags & device::kComplete) != 0;
    TileArith arith{row_arith(call.dtype, call.accumulate, reduce), info(call.dtype).bytes,
                    divides ? call.contributions : 1};
    const bool is_float = info(call.dtype).kind == DtypeKind::kFloat;
    if ((op.flags & device::kExact) != 0 && device::differs_if_exact(is_float, reduce)) {
      arith.exact = exact_arith(call.dtype, call.accumulate);
    }
    return arith;
  }
  bool adds_exactly() const { return exact.bytes != 0; }
  void start(CpuSums& sums, const CpuTile& tile, uint32_t bytes) const {
    rows.start(sums.bytes, tile.bytes, bytes / element);
  }
  void add(CpuSums& sums, const CpuTile& tile, uint32_t bytes) const {
    rows.add(sums.bytes, tile.bytes, bytes / element);
  }
  void merge(CpuSums& sums, const CpuSums& more, uint32_t bytes) const {
    rows.merge(sums.bytes, more.bytes, bytes / element);
  }
  void finish(CpuSums& sums, CpuTile& tile, uint32_t bytes) const {
    const uint32_t n = bytes / element;
    if (divisor > 1) rows.divide(sums.bytes, n, divisor);
    rows.finish(tile.bytes, sums.bytes, n);
  }
};

/// The sums of parts of a tree (interpreter/machine.h), of whole pieces.
struct TreeSums {
  const TileArith& arith;
  CpuSums* sums;
  uint32_t bytes;

  uint32_t slices() const { return 1; }
  void start(uint32_t i, const CpuTile& tile, uint32_t) { arith.start(sums[i], tile, bytes); }
  void add(uint32_t i, const CpuTile& tile, uint32_t) { arith.add(sums[i], tile, bytes); }
  void merge(uint32_t i) { arith.merge(sums[i], sums[i + 1], bytes); }
  void finish(CpuTile& tile, uint32_t) { arith.finish(sums[0], tile, bytes); }
};

/// Exact sums (interpreter/machine.h), of whole pieces.
struct ExactTile {
  const TileArith& arith;
  void* sums;
  uint32_t bytes;

  uint32_t slices() const { return 1; }
  void start(const CpuTile& tile, uint32_t) {
    arith.exact.start(sums, tile.bytes, bytes / arith.element);
  }
  void add(const CpuTile& tile, uint32_t) {
    arith.exact.add(sums, tile.bytes, bytes / arith.element);
  }
  void finish(CpuTile& tile, uint32_t) {
    arith.exact.finish(tile.bytes, sums, bytes / arith.element, arith.divisor);
  }
};

/// Where a machine keeps them: they are too large for the stack of a fiber. A copy of a machine has
/// a room of its own.
class SumRoom {
 public:
  SumRoom() = default;
  SumRoom(const SumRoom&) {}
  SumRoom& operator=(const SumRoom&) { return *this; }

  TreeSums tree(const TileArith& arith, uint32_t bytes) {
    return {arith, room(device::kMaxTreeParts * sizeof(CpuSums)), bytes};
  }
  ExactTile exact(const TileArith& arith, uint32_t bytes) {
    return {arith, room(arith.exact.bytes), bytes};
  }

 private:
  CpuSums* room(size_t bytes) {
    const size_t needed = (bytes + sizeof(CpuSums) - 1) / sizeof(CpuSums);
    if (count_ < needed) {
      sums_ = std::make_unique_for_overwrite<CpuSums[]>(needed);  // of most no page is touched
      count_ = needed;
    }
    return sums_.get();
  }

  std::unique_ptr<CpuSums[]> sums_;
  size_t count_ = 0;
};

}  // namespace mscclc
