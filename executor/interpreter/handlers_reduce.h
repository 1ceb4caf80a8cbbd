// Plain reductions: sources are added up in written order, the result goes to every destination.
#pragma once

#include "executor/interpreter/machine.h"

namespace mscclc::device {

/// The body of all reductions, plain (F none) and of packets.
template <PacketFormat F, class M>
MSCCLC_BODY inline void reduce_moves(M& m, const Frame& f, const DeviceOp& op) {
  const auto arith = m.arith(op);
  for (uint32_t i = 0; i < op.count; ++i) {
    for_each_stretch<F>(f, op, f.rank.moves[op.first + i], [&](const Stretch& s) {
      m.template for_each_piece<F>(s, [&](const Piece& piece) {
        typename M::Sums sums;
        gather<F>(m, f, s, piece, [&](const typename M::Tile& tile, bool first) {
          if (first) {
            arith.start(sums, tile, piece.payload);
          } else {
            arith.add(sums, tile, piece.payload);
          }
        });
        typename M::Tile result;
        arith.finish(sums, result, piece.payload);
        // So that a result is the same bits where it is kept and where it is sent.
        if constexpr (F == PacketFormat::sentinel) m.drop_minus_zeros(result, piece.payload);
        scatter<F>(m, f, s, piece, result);
      });
    });
  }
}

template <class M>
MSCCLC_RUN inline void run_reduce(M& m, const Frame& f, const DeviceOp& op) {
  reduce_moves<PacketFormat::none>(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_read_reduce(M& m, const Frame& f, const DeviceOp& op) {
  reduce_moves<PacketFormat::none>(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_reduce_send(M& m, const Frame& f, const DeviceOp& op) {
  reduce_moves<PacketFormat::none>(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_read_reduce_send(M& m, const Frame& f, const DeviceOp& op) {
  reduce_moves<PacketFormat::none>(m, f, op);
}

}  // namespace mscclc::device
