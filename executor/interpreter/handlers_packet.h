// Steps of packets: into packets, out of packets, on to others, added up.
//
// An op goes over all units of its slots, whatever the length of the chunks beside them: writers
// and readers of a slot then agree for every message size.
#pragma once

#include "executor/interpreter/handlers_reduce.h"

namespace mscclc::device {

/// The only source of a move, for a piece.
template <PacketFormat F, class M, class P>
MSCCLC_RUN inline Source only_source(M& m, const P& p, const typename P::Stretch& s,
                                     const Piece& piece) {
  const uint32_t k = dsts_of(s);
  const bool packets = (flags_of(p, s, k) & kPackets) != 0;
  const uint8_t* address = address_of(m, p, s, k);
  return {packets ? address : address + piece.offset, packets};
}

/// Moves the only source of `n` moves from `i` on, which are alike, to all their destinations, each
/// plain or as packets. All sources are read before the first is passed on: one wait, not one for
/// each.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void move_packets(M& m, const P& p, const typename P::Op& op, uint32_t i,
                                     uint32_t n) {
  for_each_stretch<F>(p, op, i, [&](const typename P::Stretch& s) {
    m.template for_each_piece<F>(s, [&](const Piece& piece) {
      Source sources[M::kTogether];
      typename M::Tile tiles[M::kTogether];
      sources[0] = only_source<F>(m, p, s, piece);
      MSCCLC_UNROLL
      for (uint32_t j = 1; j < M::kTogether; ++j) {
        if (j < n) sources[j] = only_source<F>(m, p, stretch_beside(p, s, j), piece);
      }
      m.template fetch<F>(sources, n, piece, tiles);
      const auto store = [&] {
        MSCCLC_UNROLL
        for (uint32_t j = 0; j < M::kTogether; ++j) {
          if (j >= n) break;
          make_sendable<F>(m, sources[j], piece, tiles[j]);
          scatter<F>(m, p, stretch_beside(p, s, j), piece, tiles[j], sources[j].address);
        }
      };
      store_and_empty<F>(m, store, [&] {
        MSCCLC_UNROLL
        for (uint32_t j = 0; j < M::kTogether; ++j) {
          if (j < n) empty<F>(m, sources[j], piece);
        }
      });
    });
  });
}

template <class M, class P>
MSCCLC_RUN inline void move_all_packets(M& m, const P& p, const typename P::Op& op) {
  with_format(op.format, [&](auto tag) {
    for (uint32_t i = 0, n = 0; i < op.count; i += n) {
      n = in_step<M>(p, op, i);
      move_packets<decltype(tag)::kFormat>(m, p, op, i, n);
    }
  });
}

/// Hands the slots of a move to the proxies, as they lie.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void post_packets(M& m, const P& p, const typename P::Op& op, uint32_t i) {
  constexpr uint64_t kWire = Format<F>::kWire;
  for_each_stretch<F>(p, op, i, [&](const typename P::Stretch& s) {
    const uint8_t* from = address_of(m, p, s, dsts_of(s)) + s.skip * kWire;
    for (uint32_t k = 0; k < dsts_of(s); ++k) {
      m.post_put(channel_of(p, s, k), address_of(m, p, s, k) + s.skip * kWire, from,
                 s.count * kWire);
    }
  });
}

/// Waits until all packets of a move have come, without reading them.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void await_packets(M& m, const P& p, const typename P::Op& op, uint32_t i) {
  for_each_stretch<F>(p, op, i, [&](const typename P::Stretch& s) {
    m.template for_each_piece<F>(s, [&](const Piece& piece) {
      const Source source = {address_of(m, p, s, dsts_of(s)), true};
      typename M::Tile tile;
      m.template fetch<F>(&source, 1, piece, &tile);
    });
  });
}

/// Puts the sentinel back into the source of a move.
template <PacketFormat F, class M, class P>
MSCCLC_BODY inline void empty_source(M& m, const P& p, const typename P::Op& op, uint32_t i) {
  for_each_stretch<F>(p, op, i, [&](const typename P::Stretch& s) {
    m.template for_each_piece<F>(s, [&](const Piece& piece) {
      m.empty_packets(address_of(m, p, s, dsts_of(s)) + piece.unit * Format<F>::kWire,
                      piece.payload);
    });
  });
}

template <class M, class P>
MSCCLC_RUN inline void run_move_packets(M& m, const P& p, const typename P::Op& op) {
  move_all_packets(m, p, op);
}

template <class M, class P>
MSCCLC_RUN inline void run_switch_broadcast_packets(M& m, const P& p, const typename P::Op& op) {
  move_all_packets(m, p, op);
}

template <class M, class P>
MSCCLC_RUN inline void run_post_packets(M& m, const P& p, const typename P::Op& op) {
  with_format(op.format, [&](auto tag) {
    for (uint32_t i = 0; i < op.count; ++i) post_packets<decltype(tag)::kFormat>(m, p, op, i);
  });
}

/// Waits until the proxies have read what a move handed to them.
template <PacketFormat F, class M, class P>
MSCCLC_RUN inline void flush_posts(M& m, const P& p, const typename P::Op& op, uint32_t i) {
  for_each_stretch<F>(p, op, i, [&](const typename P::Stretch& s) {
    m.flush(dsts_of(s), [&](uint32_t k) { return channel_of(p, s, k); });
  });
}

/// The packets are sent as they lie once all are there. A sentinel slot may be emptied
/// only when the proxies have read it. A part without any is left out, with its meetings (lemma
/// O9).
template <PacketFormat F, class M, class P>
MSCCLC_RUN inline void forward_by_port(M& m, const P& p, const typename P::Op& op, uint32_t i) {
  bool any = false;
  for_each_stretch<F>(p, op, i, [&](const typename P::Stretch&) { any = true; });
  if (!any) return;
  await_packets<F>(m, p, op, i);
  m.sync();
  post_packets<F>(m, p, op, i);
  if constexpr (Format<F>::kSentinel) {
    flush_posts<F>(m, p, op, i);
    m.sync();
    empty_source<F>(m, p, op, i);
  }
}

template <class M, class P>
MSCCLC_RUN inline void run_forward_packets(M& m, const P& p, const typename P::Op& op) {
  with_format(op.format, [&](auto tag) {
    for (uint32_t i = 0; i < op.count; ++i) forward_by_port<decltype(tag)::kFormat>(m, p, op, i);
  });
}

template <class M, class P>
MSCCLC_RUN inline void run_reduce_packets(M& m, const P& p, const typename P::Op& op) {
  with_format(op.format, [&](auto tag) { reduce_sources<decltype(tag)::kFormat>(m, p, op); });
}

}  // namespace mscclc::device
