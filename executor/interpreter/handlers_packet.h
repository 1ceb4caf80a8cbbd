// Packet ops: into packets, out of packets, on to others, added up.
//
// An op goes over all units of its slots, whatever the length of the chunks beside them: writers
// and readers of a slot then agree for every message size.
#pragma once

#include "executor/interpreter/handlers_reduce.h"

namespace mscclc::device {

/// Calls fn with the op's packet format as a constant: fn(FormatTag<F>{}).
template <PacketFormat F>
struct FormatTag {
  static constexpr PacketFormat kFormat = F;
};
template <class M, class Fn>
MSCCLC_RUN inline void with_format(PacketFormat format, Fn fn) {
  const auto call = [&](auto tag) {
    if constexpr (machine_has<M>(decltype(tag)::kFormat)) fn(tag);
  };
  switch (format) {
    case PacketFormat::LL8:
      return call(FormatTag<PacketFormat::LL8>{});
    case PacketFormat::LL16:
      return call(FormatTag<PacketFormat::LL16>{});
    case PacketFormat::LL128:
      return call(FormatTag<PacketFormat::LL128>{});
    case PacketFormat::sentinel:
      return call(FormatTag<PacketFormat::sentinel>{});
    case PacketFormat::none:
      return;
  }
}

/// How many moves of an op from `i` on a machine does in step: those that are alike, up to as many
/// as it reads at once.
template <class M>
MSCCLC_RUN inline uint32_t in_step(const Frame& f, const DeviceOp& op, uint32_t i) {
  const Move* moves = f.rank.moves + op.first;
  uint32_t n = 1;
  while (n < M::kTogether && i + n < op.count && moves[i + n].like_last) ++n;
  return n;
}

/// The stretch of another move in step with the first, whose stretch is `s`.
MSCCLC_RUN inline Stretch stretch_beside(const Frame& f, const Stretch& s, uint32_t moves_on) {
  const Move* other = s.move + moves_on;
  const Run* first = f.rank.runs + s.move->runs;
  return {other, f.rank.runs + other->runs + (s.run - first), s.skip, s.count};
}

/// The only source of a move, for a piece.
template <PacketFormat F, class M>
MSCCLC_RUN inline Source only_source(M& m, const Frame& f, const Stretch& s, const Piece& piece) {
  const uint32_t k = s.move->dsts;
  const bool packets = (f.rank.operands[s.move->operands + k].flags & kPackets) != 0;
  const uint8_t* address = address_of(m, f, s, k);
  return {packets ? address : address + piece.offset, packets};
}

/// Moves the only source of `n` moves that are alike to all their destinations, each plain or as
/// packets. All sources are read before the first is passed on: one wait, not one for each.
template <PacketFormat F, class M>
MSCCLC_BODY inline void move_packets(M& m, const Frame& f, const DeviceOp& op, const Move& first,
                                     uint32_t n) {
  for_each_stretch<F>(f, op, first, [&](const Stretch& s) {
    m.template for_each_piece<F>(s, [&](const Piece& piece) {
      Source sources[M::kTogether];
      typename M::Tile tiles[M::kTogether];
      sources[0] = only_source<F>(m, f, s, piece);
      MSCCLC_UNROLL
      for (uint32_t i = 1; i < M::kTogether; ++i) {
        if (i < n) sources[i] = only_source<F>(m, f, stretch_beside(f, s, i), piece);
      }
      m.template fetch<F>(sources, n, piece, tiles);
      MSCCLC_UNROLL
      for (uint32_t i = 0; i < M::kTogether; ++i) {
        if (i >= n) break;
        take_from<F>(m, sources[i], piece, tiles[i]);
        scatter<F>(m, f, stretch_beside(f, s, i), piece, tiles[i]);
      }
    });
  });
}

template <class M>
MSCCLC_RUN inline void move_all_packets(M& m, const Frame& f, const DeviceOp& op) {
  with_format<M>(op.format, [&](auto tag) {
    for (uint32_t i = 0, n = 0; i < op.count; i += n) {
      n = in_step<M>(f, op, i);
      move_packets<decltype(tag)::kFormat>(m, f, op, f.rank.moves[op.first + i], n);
    }
  });
}

/// Hands the slots of a move to the proxies, as they lie.
template <PacketFormat F, class M>
MSCCLC_BODY inline void post_packets(M& m, const Frame& f, const DeviceOp& op, const Move& move) {
  constexpr uint64_t kWire = Unit<F>::kWire;
  for_each_stretch<F>(f, op, move, [&](const Stretch& s) {
    const uint8_t* from = address_of(m, f, s, move.dsts) + s.skip * kWire;
    for (uint32_t k = 0; k < move.dsts; ++k) {
      const uint32_t channel = f.rank.operands[move.operands + k].channel;
      m.post_put(channel, address_of(m, f, s, k) + s.skip * kWire, from, s.count * kWire);
    }
  });
}

/// Waits until all packets of a move have come, without reading them.
template <PacketFormat F, class M>
MSCCLC_BODY inline void await_packets(M& m, const Frame& f, const DeviceOp& op, const Move& move) {
  for_each_stretch<F>(f, op, move, [&](const Stretch& s) {
    m.template for_each_piece<F>(s, [&](const Piece& piece) {
      const Source source = {address_of(m, f, s, move.dsts), true};
      typename M::Tile tile;
      m.template fetch<F>(&source, 1, piece, &tile);
    });
  });
}

/// Puts the sentinel back into the source of a move.
template <class M>
MSCCLC_BODY inline void empty_source(M& m, const Frame& f, const DeviceOp& op, const Move& move) {
  for_each_stretch<PacketFormat::sentinel>(f, op, move, [&](const Stretch& s) {
    m.template for_each_piece<PacketFormat::sentinel>(
        s, [&](const Piece& piece) { m.empty_packets(address_of(m, f, s, move.dsts), piece); });
  });
}

MSCCLC_RUN inline bool goes_by_port(const Frame& f, const Move& move) {
  return (f.rank.operands[move.operands].flags & kPort) != 0;
}

template <class M>
MSCCLC_RUN inline void run_copy_packets(M& m, const Frame& f, const DeviceOp& op) {
  move_all_packets(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_unpack_packets(M& m, const Frame& f, const DeviceOp& op) {
  move_all_packets(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_switch_broadcast_packets(M& m, const Frame& f, const DeviceOp& op) {
  move_all_packets(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_put_packets(M& m, const Frame& f, const DeviceOp& op) {
  with_format<M>(op.format, [&](auto tag) {
    constexpr PacketFormat kFormat = decltype(tag)::kFormat;
    for (uint32_t i = 0; i < op.count; ++i) {
      const Move& move = f.rank.moves[op.first + i];
      if (goes_by_port(f, move)) {
        post_packets<kFormat>(m, f, op, move);
      } else {
        move_packets<kFormat>(m, f, op, move, 1);
      }
    }
  });
}

/// Over ports the packets are sent as they lie once all are there. A sentinel slot may be emptied
/// only when the proxies have read it.
template <PacketFormat F, class M>
MSCCLC_RUN inline void forward_by_port(M& m, const Frame& f, const DeviceOp& op, const Move& move) {
  await_packets<F>(m, f, op, move);
  m.sync();
  post_packets<F>(m, f, op, move);
  if constexpr (F == PacketFormat::sentinel) {
    m.for_each_post(move.dsts,
                    [&](uint32_t k) { m.flush(f.rank.operands[move.operands + k].channel); });
    m.sync();
    empty_source(m, f, op, move);
  }
}

template <class M>
MSCCLC_RUN inline void run_read_put_packets(M& m, const Frame& f, const DeviceOp& op) {
  with_format<M>(op.format, [&](auto tag) {
    constexpr PacketFormat kFormat = decltype(tag)::kFormat;
    for (uint32_t i = 0; i < op.count; ++i) {
      const Move& move = f.rank.moves[op.first + i];
      if (goes_by_port(f, move)) {
        forward_by_port<kFormat>(m, f, op, move);
      } else {
        move_packets<kFormat>(m, f, op, move, 1);
      }
    }
  });
}

template <class M>
MSCCLC_RUN inline void reduce_all_packets(M& m, const Frame& f, const DeviceOp& op) {
  with_format<M>(op.format, [&](auto tag) { reduce_moves<decltype(tag)::kFormat>(m, f, op); });
}

template <class M>
MSCCLC_RUN inline void run_reduce_packets(M& m, const Frame& f, const DeviceOp& op) {
  reduce_all_packets(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_reduce_send_packets(M& m, const Frame& f, const DeviceOp& op) {
  reduce_all_packets(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_reduce_copy_packets(M& m, const Frame& f, const DeviceOp& op) {
  reduce_all_packets(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_reduce_copy_send_packets(M& m, const Frame& f, const DeviceOp& op) {
  reduce_all_packets(m, f, op);
}

}  // namespace mscclc::device
