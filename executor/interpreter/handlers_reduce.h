// Plain reductions: sources are added up in written order, the result goes to every destination.
#pragma once

#include "executor/interpreter/frame.h"
#include "executor/interpreter/steps.h"

namespace mscclc::device {

/// Adds up the sources of a stretch, and writes the result to every destination.
template <PacketFormat F, class M, class P, class Arith>
MSCCLC_RUN inline void reduce_stretch(M& m, const P& p, const typename P::Stretch& s,
                                      const Arith& arith) {
  m.template for_each_piece<F>(s, [&](const Piece& piece) {
    typename M::Sums sums;
    gather<F>(m, p, s, piece, [&](const typename M::Tile& tile, bool first) {
      if (first) {
        arith.start(sums, tile, piece.payload);
      } else {
        arith.add(sums, tile, piece.payload);
      }
    });
    typename M::Tile result;
    arith.finish(sums, result, piece.payload);
    store_and_empty<F>(
        m, [&] { scatter<F>(m, p, s, piece, result); }, [&] { empty_all<F>(m, p, s, piece); });
  });
}

/// The body of all reductions, plain (F none) and of packets.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void reduce_moves(M& m, const P& p, const typename P::Op& op) {
  const auto arith = m.arith(op);
  for (uint32_t i = 0; i < op.count; ++i) {
    for_each_stretch<F>(p, op, i,
                        [&](const typename P::Stretch& s) { reduce_stretch<F>(m, p, s, arith); });
  }
}

template <class M, class P>
MSCCLC_RUN inline void run_reduce(M& m, const P& p, const typename P::Op& op) {
  reduce_moves<PacketFormat::none>(m, p, op);
}

}  // namespace mscclc::device
