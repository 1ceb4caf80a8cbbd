// Plain reductions: sources are added up in written order, one after the other or as a tree, or
// exactly, and the result goes to every destination.
#pragma once

#include "executor/interpreter/frame.h"
#include "executor/interpreter/steps.h"
#include "executor/interpreter/trees.h"

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

/// Calls fn(piece) for every piece of a stretch, which may be smaller than others where the machine
/// has no room for the parts of a tree, or for exact sums.
template <PacketFormat F, class M, class Stretch, class Fn>
MSCCLC_RUN inline void for_each_tree_piece(M& m, const Stretch& s, Fn fn) {
  if constexpr (requires { m.template for_each_small_piece<F>(s, fn); }) {
    m.template for_each_small_piece<F>(s, fn);
  } else {
    m.template for_each_piece<F>(s, fn);
  }
}

/// Adds up the sources of a stretch as a tree, and writes the result to every destination. A
/// machine may do so for one slice of a piece after the other, and read the sources again for each.
template <PacketFormat F, class M, class P, class Arith>
MSCCLC_RUN inline void reduce_tree(M& m, const P& p, const typename P::Stretch& s,
                                   const Arith& arith) {
  for_each_tree_piece<F>(m, s, [&](const Piece& piece) {
    auto sums = m.tree_sums(arith, piece.payload);
    const auto merge = [&](uint32_t i) { sums.merge(i); };
    typename M::Tile result;
    for (uint32_t slice = 0; slice < sums.slices(); ++slice) {
      TreeWalk walk;
      gather<F>(m, p, s, piece, [&](const typename M::Tile& tile, bool) {
        walk.take([&](uint32_t i) { sums.start(i, tile, slice); },
                  [&](uint32_t i) { sums.add(i, tile, slice); }, merge);
      });
      walk.finish(merge);
      sums.finish(result, slice);
    }
    store_and_empty<F>(
        m, [&] { scatter<F>(m, p, s, piece, result); }, [&] { empty_all<F>(m, p, s, piece); });
  });
}

/// Adds up the sources of a stretch exactly, and writes the result to every destination; slices are
/// as those of a tree.
template <PacketFormat F, class M, class P, class Arith>
MSCCLC_RUN inline void reduce_stretch_exactly(M& m, const P& p, const typename P::Stretch& s,
                                              const Arith& arith) {
  for_each_tree_piece<F>(m, s, [&](const Piece& piece) {
    auto sums = m.exact_sums(arith, piece.payload);
    typename M::Tile result;
    for (uint32_t slice = 0; slice < sums.slices(); ++slice) {
      gather<F>(m, p, s, piece, [&](const typename M::Tile& tile, bool first) {
        if (first) {
          sums.start(tile, slice);
        } else {
          sums.add(tile, slice);
        }
      });
      sums.finish(result, slice);
    }
    store_and_empty<F>(
        m, [&] { scatter<F>(m, p, s, piece, result); }, [&] { empty_all<F>(m, p, s, piece); });
  });
}

/// The body of all exact reductions.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void reduce_exactly(M& m, const P& p, const typename P::Op& op) {
  const auto arith = m.arith(op);
  for (uint32_t i = 0; i < op.count; ++i) {
    for_each_stretch<F>(
        p, op, i, [&](const typename P::Stretch& s) { reduce_stretch_exactly<F>(m, p, s, arith); });
  }
}

/// The body of all reductions as trees.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void reduce_trees(M& m, const P& p, const typename P::Op& op) {
  const auto arith = m.arith(op);
  for (uint32_t i = 0; i < op.count; ++i) {
    for_each_stretch<F>(p, op, i,
                        [&](const typename P::Stretch& s) { reduce_tree<F>(m, p, s, arith); });
  }
}

template <PacketFormat F, class M, class P>
MSCCLC_RUN inline void reduce_sources(M& m, const P& p, const typename P::Op& op) {
  if constexpr (M::kTrees) {
    if ((op.flags & kTree) != 0) return reduce_trees<F>(m, p, op);
    if ((op.flags & kExact) != 0 && m.arith(op).adds_exactly()) {
      return reduce_exactly<F>(m, p, op);
    }
  }
  reduce_moves<F>(m, p, op);
}

template <class M, class P>
MSCCLC_RUN inline void run_reduce(M& m, const P& p, const typename P::Op& op) {
  reduce_sources<PacketFormat::none>(m, p, op);
}

}  // namespace mscclc::device
