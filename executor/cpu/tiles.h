// What machines on CPUs move and add up at once: a tile of elements, and its sums.
#pragma once

#include "executor/cpu/arith.h"
#include "executor/interpreter/layout.h"

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

  /// What an op or a step does in a call: a Call, or a launch of one.
  template <class AnyOp, class AnyCall>
  static TileArith of(const AnyOp& op, const AnyCall& call) {
    const ReduceOp reduce = op.reduce == ReduceOp::call ? call.reduce : op.reduce;
    const bool divides = reduce == ReduceOp::avg && (op.flags & device::kComplete) != 0;
    return {row_arith(call.dtype, call.accumulate, reduce), info(call.dtype).bytes,
            divides ? call.contributions : 1};
  }
  void start(CpuSums& sums, const CpuTile& tile, uint32_t bytes) const {
    rows.start(sums.bytes, tile.bytes, bytes / element);
  }
  void add(CpuSums& sums, const CpuTile& tile, uint32_t bytes) const {
    rows.add(sums.bytes, tile.bytes, bytes / element);
  }
  void finish(CpuSums& sums, CpuTile& tile, uint32_t bytes) const {
    const uint32_t n = bytes / element;
    if (divisor > 1) rows.divide(sums.bytes, n, divisor);
    rows.finish(tile.bytes, sums.bytes, n);
  }
};

}  // namespace mscclc
