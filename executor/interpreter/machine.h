// What a machine must offer the interpreter, and the words both share.
//
// A machine M runs the ops of one thread block. The interpreter says what is moved, added up and
// waited for, and in what order; the machine says how: one fiber that walks over long tiles, or
// the threads of a block over 16 bytes each.
//
//   M::Tile, M::Sums        elements of a piece; their sums, in the accumulation type
//   M::kTogether            sources that the machine reads (and waits for) at once
//   m.enter(op)             an op begins: for reports; a host fiber may hand over here
//   m.base(i)               address of bases[i] in this call (with its copy)
//   m.arith(op)             the op's reduction on the call's data type: start(sums, tile, bytes),
//                           add(sums, tile, bytes), finish(sums, tile, bytes), which divides for
//                           avg
//   m.for_each_piece<F>(stretch, fn)   calls fn(piece) for every piece of a stretch, any order; who
//                           gets a piece is a matter of its place in the stretch and of F alone
//                           (passes/thread_partition.h counts on it)
//   m.for_each_target(n, fn)           calls fn(i) for i < n, any order; each by one thread
//   m.for_each_post(n, fn)             the same, in order, by the one thread that posts to the
//   proxy m.fetch<F>(sources, n, piece, tiles)  reads n sources; waits until all packets have come
//   m.store(address, piece, tile)      writes the data of a piece (piece.bytes)
//   m.write_packets<F>(slot, piece, tile)  writes a piece as packets of this call
//   m.empty_packets(slot, piece)       puts the sentinel back
//   m.copy(to, from, bytes)            plain bytes
//   m.signal(c, relaxed), m.wait(c, relaxed), m.flush(c), m.release(s), m.acquire(s)
//                                      channels and semaphores of this rank, by index; called by
//                                      one thread, in for_each_target; signals of ports and
//                                      flushes in for_each_post
//   m.meet(b), m.sync()                a barrier of this rank; the threads of this block
//   m.post_put(c, to, from, bytes)     hands a put to the proxy of a port channel; called by all
//                                      threads, of which one posts
#pragma once

#include "executor/interpreter/layout.h"
#include "executor/interpreter/packets.h"

namespace mscclc::device {

// A machine may be made for some plans only: M::runs(kind) then says which ops it holds,
// M::kFormats (a bit for each) which packet formats, M::kPosts whether it posts to proxies. Without
// these: all.
template <class M>
constexpr bool machine_runs(OpKind kind) {
  if constexpr (requires { M::runs(kind); }) {
    return M::runs(kind);
  } else {
    return true;
  }
}
template <class M>
constexpr bool machine_has(PacketFormat format) {
  if constexpr (requires { M::kFormats; }) {
    return (M::kFormats >> static_cast<uint32_t>(format) & 1) != 0;
  } else {
    return true;
  }
}
template <class M>
constexpr bool machine_posts() {
  if constexpr (requires { M::kPosts; }) {
    return M::kPosts;
  } else {
    return true;
  }
}

/// What an op runs in: the rank's program, and the pipeline round.
struct Frame {
  RankView rank;
  uint64_t round_begin = 0;  ///< virtual bytes, in a pipeline
  uint64_t round_unit = 0;
};

/// The part of a run that a block moves in one go; counts bytes, or units of a packet format.
struct Stretch {
  const Move* move;
  const Run* run;
  uint64_t skip;  ///< of the run, before the stretch
  uint64_t count;
};

/// Some of a stretch: whole units, or one lane of a unit.
struct Piece {
  uint64_t unit;     ///< packet formats: first unit, counted from the run's begin
  uint64_t offset;   ///< of its payload from the run's begin, in bytes
  uint32_t payload;  ///< bytes of its payload
  uint32_t bytes;    ///< how many of them are data; zeros follow
  uint32_t lane;     ///< a machine that gives several lanes to a unit says which
};

/// One place to read a piece from: plain bytes, or the slot of packets.
struct Source {
  const uint8_t* address;  ///< of the piece if plain; of the run's first unit if packets
  bool packets;
};

/// A piece of whole units: `first` counts from the run's begin, in bytes for plain stretches.
template <PacketFormat F>
MSCCLC_HD inline Piece piece_of(const Stretch& s, uint64_t first, uint32_t count) {
  constexpr uint32_t kData = F == PacketFormat::none ? 1 : Unit<F>::kData;
  const uint64_t offset = first * kData;
  const uint32_t payload = count * kData;
  const uint64_t left = offset < s.run->length ? s.run->length - offset : 0;
  return {first, offset, payload, left < payload ? static_cast<uint32_t>(left) : payload, 0};
}

/// What of a move's virtual range this block moves now.
MSCCLC_HD inline Range range_of(const Frame& f, const DeviceOp& op, const Move& move) {
  if ((op.flags & kInLoop) == 0) return {move.begin, move.end};
  Range round = {f.round_begin, f.round_begin + f.round_unit};
  if (round.end > move.end) round.end = move.end;
  if (round.begin >= round.end || op.parts < 2) return round;
  const uint64_t granules = (round.end - round.begin + f.rank.align - 1) / f.rank.align;
  const Range part = part_of(granules, op.parts, op.part);
  const uint64_t end = round.begin + part.end * f.rank.align;
  return {round.begin + part.begin * f.rank.align, end < round.end ? end : round.end};
}

/// Calls fn(stretch) for what this block moves of a move, run by run.
template <PacketFormat F, class Fn>
MSCCLC_RUN inline void for_each_stretch(const Frame& f, const DeviceOp& op, const Move& move,
                                        Fn fn) {
  const Range range = range_of(f, op, move);
  for (uint32_t i = 0; i < move.run_count; ++i) {
    const Run& run = f.rank.runs[move.runs + i];
    const uint64_t run_end = run.begin + (F == PacketFormat::none ? run.length : run.size);
    const uint64_t begin = range.begin > run.begin ? range.begin : run.begin;
    const uint64_t end = range.end < run_end ? range.end : run_end;
    if (begin < end) fn(Stretch{&move, &run, begin - run.begin, end - begin});
  }
}

/// How far in front of its chunk the unit at hand would make a chunk begin that holds few units:
/// round i of virtual bytes i * unit on lies in unit i % units.
MSCCLC_HD inline uint64_t skipped_units(const Frame& f, uint32_t units) {
  const uint64_t round = f.round_begin / f.round_unit;
  return (round - round % units) * f.round_unit;
}

/// Where operand `k` of a move begins in a run, at one member of its switch.
template <class M>
MSCCLC_RUN inline uint8_t* address_of(M& m, const Frame& f, const Stretch& s, uint32_t k,
                                      uint32_t member = 0) {
  const DeviceOperand& operand = f.rank.operands[s.move->operands + k];
  uint8_t* begin = m.base(operand.base + member) + f.rank.offsets[s.run->offsets + k];
  const uint32_t units = operand.flags >> kUnitsShift;
  return units == 0 ? begin : begin - skipped_units(f, units);
}

/// Goes over the sources of a move in written order, at a switch over its members in rank order.
template <PacketFormat F, class M>
class SourceWalk {
 public:
  MSCCLC_RUN SourceWalk(M& m, const Frame& f, const Stretch& s, const Piece& piece)
      : m_(m), f_(f), s_(s), piece_(piece), k_(s.move->dsts) {}
  MSCCLC_RUN bool more() const { return k_ < uint32_t{s_.move->dsts} + s_.move->srcs; }
  MSCCLC_RUN Source next() {
    const DeviceOperand& operand = f_.rank.operands[s_.move->operands + k_];
    const bool packets = F != PacketFormat::none && (operand.flags & kPackets) != 0;
    const uint8_t* address = address_of(m_, f_, s_, k_, member_);
    if (++member_ == operand.members) {
      member_ = 0;
      ++k_;
    }
    return {packets ? address : address + piece_.offset, packets};
  }

 private:
  M& m_;
  const Frame& f_;
  const Stretch& s_;
  const Piece& piece_;
  uint32_t k_, member_ = 0;
};

/// What reading a piece of a source leaves to do: a sentinel packet is emptied; data that goes with
/// sentinel packets has no -0.0.
template <PacketFormat F, class M>
MSCCLC_RUN inline void take_from(M& m, const Source& source, const Piece& piece,
                                 typename M::Tile& tile) {
  if constexpr (F == PacketFormat::sentinel) {
    if (source.packets) {
      m.empty_packets(const_cast<uint8_t*>(source.address), piece);
    } else {
      m.drop_minus_zeros(tile, piece.payload);
    }
  }
}

/// Reads a piece of every source and calls use(tile, first) for each, in written order. Reading a
/// sentinel packet empties it.
template <PacketFormat F, class M, class Use>
MSCCLC_RUN inline void gather(M& m, const Frame& f, const Stretch& s, const Piece& piece, Use use) {
  SourceWalk<F, M> walk(m, f, s, piece);
  for (bool first = true; walk.more();) {
    Source batch[M::kTogether];
    typename M::Tile tiles[M::kTogether];
    batch[0] = walk.next();
    uint32_t filled = 1;
    MSCCLC_UNROLL
    for (uint32_t i = 1; i < M::kTogether; ++i) {
      if (!walk.more()) break;
      batch[i] = walk.next();
      filled = i + 1;
    }
    m.template fetch<F>(batch, filled, piece, tiles);
    MSCCLC_UNROLL
    for (uint32_t i = 0; i < M::kTogether; ++i) {
      if (i >= filled) break;
      take_from<F>(m, batch[i], piece, tiles[i]);
      use(tiles[i], first);
      first = false;
    }
  }
}

/// Writes a piece to every destination of a move: plain, or as packets.
template <PacketFormat F, class M>
MSCCLC_RUN inline void scatter(M& m, const Frame& f, const Stretch& s, const Piece& piece,
                               const typename M::Tile& tile) {
  for (uint32_t k = 0; k < s.move->dsts; ++k) {
    const DeviceOperand& operand = f.rank.operands[s.move->operands + k];
    for (uint32_t member = 0; member < operand.members; ++member) {
      uint8_t* address = address_of(m, f, s, k, member);
      if constexpr (F != PacketFormat::none) {
        if ((operand.flags & kPackets) != 0) {
          m.template write_packets<F>(address, piece, tile);
          continue;
        }
      }
      m.store(address + piece.offset, piece, tile);
    }
  }
}

}  // namespace mscclc::device
