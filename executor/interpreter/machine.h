// What a machine must offer the interpreter, and the words both share. What an op does to a unit,
// in which order, is in ir/ops/parts.h.
//
// A machine M runs the ops of one thread block. The interpreter says what is moved, added up and
// waited for, and in what order; the machine says how: one fiber that walks over long tiles, or
// the threads of a block over 16 bytes each.
//
//   M::Tile, M::Sums        elements of a piece; their sums, in the accumulation type
//   M::kTogether            sources that the machine reads (and waits for) at once
//   M::kTrees               does it add up as trees, and exactly? One that does not runs no program
//   with such
//   ops m.enter(op)             an op begins: for reports; a fiber may hand over here m.base(i)
//   frames: address of bases[i] in this call (with its copy) m.call()                steps: the
//   number of this call m.arith(op)             the op's reduction on the call's data type:
//   start(sums, tile, bytes),
//                           add(sums, tile, bytes), finish(sums, tile, bytes), which divides for
//                           avg
//   m.tree_sums(arith, bytes)          sums for parts of a tree, of `bytes` of each source:
//                           slices(), how many slices they are added up in; of one slice
//                           start(i, tile, slice), add(i, tile, slice), merge(i) (TreeWalk), and
//                           finish(tile, slice), which rounds and divides sum 0
//   arith.adds_exactly()    of an op with kExact: are its sums other ones for that?
//   m.exact_sums(arith, bytes)         exact sums of `bytes` of each source: slices(), and of one
//                           slice start(tile, slice), add(tile, slice), finish(tile, slice)
//   m.for_each_piece<F>(stretch, fn)   calls fn(piece) for every piece of a stretch, any order; who
//                           gets a piece is a matter of its place in the stretch and of F alone
//                           (passes/framework/thread_partition.h counts on it)
//   m.for_each_small_piece<F>(stretch, fn)  optional: the same for trees and exact sums,
//                           with smaller pieces
//   m.for_each_target(n, fn)           calls fn(i) for i < n, any order; each by one thread
//   m.for_each_post(n, fn)             the same, in order, by the one thread that posts to the
//                                      proxy
//   m.fetch<F>(sources, n, piece, tiles)  reads n sources; waits until all packets have come
//   m.store(address, piece, tile)      writes the data of a piece (piece.bytes)
//   m.write_packets<F>(slot, piece, tile)  writes a piece as packets of this call
//   m.empty_packets(units, bytes)      puts the sentinel back
//   m.empties_first()       optional: true if what is taken is to be emptied before the stores
//   m.copy(to, from, bytes)            plain bytes
//   m.signal(c, relaxed), m.wait(c, relaxed), m.release(s), m.acquire(s)
//                                      channels and semaphores of this rank, by index (frames) or
//                                      as targets (steps); called by one thread, in
//                                      for_each_target; signals of ports in for_each_post
//   m.flush(n, fn)                     waits until the sources of puts over the channels fn(i),
//                                      i < n, may change; called by all threads, of which the one
//                                      that posts waits
//   m.meet(b), m.sync()                a barrier of this rank; the threads of this block
//   m.await_flag(f), m.notify_flag(f)  a flag that the caller has given, by its number over all
//                                      arrays (frames) or as a target (steps); called by one
//                                      thread, in for_each_target
//   m.apply_rows(program, op)  optional: computes the rows of an `apply`
//   m.apply_sums(program, op)  optional: adds up rows and hands each to a row function, whose
//   result
//                           goes to every destination
//   m.post_put(c, to, from, bytes)     hands a put to the proxy of a port channel; called by all
//                                      threads, of which one posts
//
// A program P is a frame (frame.h: the arrays of a rank) or steps (steps.h: a block's ops with
// their addresses). Both offer P::Op, P::Stretch, and these functions, k counting the operands of
// a move, destinations first:
//   for_each_stretch<F>(p, op, i, fn)  calls fn(stretch) for what this block moves of move i
//   dsts_of(s), operands_of(s)         operands of the stretch's move
//   members_of(p, s, k), flags_of(p, s, k), channel_of(p, s, k), address_of(m, p, s, k, member)
//   sources_of<F>(m, p, s, piece)      goes over the places to read a piece from, in written order
//   in_step<M>(p, op, i), stretch_beside(p, s, n)   moves that can be done together
//   target_of(p, op, i)                what the i-th target of a synchronising op is
//   channel_of_target(p, op, i)        its channel
#pragma once

#include "executor/interpreter/layout.h"
#include "executor/interpreter/packets.h"
#include "ir/ops/parts.h"

namespace mscclc::device {

/// Some of a stretch: whole units, or the share that one lane of a warp has of a unit.
struct Piece {
  uint64_t unit;     ///< packet formats: first unit, counted from the run's begin
  uint64_t offset;   ///< of its payload from the run's begin, in bytes
  uint32_t payload;  ///< bytes of its payload
  uint32_t bytes;    ///< how many of them are data; zeros follow
  uint32_t lane;     ///< of the warp, on a machine that gives several to a unit
};

/// One place to read a piece from: plain bytes, or the slot of packets.
struct Source {
  const uint8_t* address;  ///< of the piece if plain; of the run's first unit if packets
  bool packets;
};

/// A piece of whole units: `first` counts from the run's begin, in bytes for plain stretches.
template <PacketFormat F, class Stretch>
MSCCLC_HD inline Piece piece_of(const Stretch& s, uint64_t first, uint32_t count) {
  constexpr uint32_t kData = F == PacketFormat::none ? 1 : Format<F>::kData;
  const uint64_t offset = first * kData;
  const uint32_t payload = count * kData;
  const uint64_t left = offset < s.length() ? s.length() - offset : 0;
  return {first, offset, payload, left < payload ? static_cast<uint32_t>(left) : payload, 0};
}

/// What of the virtual bytes [begin, end) of a move a block moves in a round of a pipeline: its
/// share if the op is a group's.
MSCCLC_HD inline Range share_of_round(Range round, uint64_t end, uint32_t part, uint32_t parts,
                                      uint32_t align) {
  if (round.end > end) round.end = end;
  if (round.begin >= round.end || parts < 2) return round;
  const uint64_t granules = (round.end - round.begin + align - 1) / align;
  const Range own = part_of(granules, parts, part);
  const uint64_t own_end = round.begin + own.end * align;
  return {round.begin + own.begin * align, own_end < round.end ? own_end : round.end};
}

/// The same of a step, which has a stretch of those bytes: in the round of `unit` bytes that begins
/// at `begin`. Empty, or begin > end: nothing.
template <class Step>
MSCCLC_HD inline Range range_in_round(const Step& step, uint64_t begin, uint64_t unit,
                                      uint32_t align) {
  const Range own =
      share_of_round({begin, begin + unit}, step.move_end, step.part, step.parts, align);
  return {own.begin > step.begin ? own.begin : step.begin, own.end < step.end ? own.end : step.end};
}

/// How far in front of its chunk the unit at hand would make a chunk begin that holds few units:
/// round i of virtual bytes i * unit on lies in unit i % units.
MSCCLC_HD inline uint64_t skipped_units(uint64_t round_begin, uint64_t round_unit, uint32_t units) {
  const uint64_t round = round_begin / round_unit;
  return (round - round % units) * round_unit;
}

/// Plain data that is moved with sentinel packets has no -0.0. (Sums need no such care: arith.h.)
template <PacketFormat F, class M>
MSCCLC_RUN inline void make_sendable(M& m, const Source& source, const Piece& piece,
                                     typename M::Tile& tile) {
  if constexpr (Format<F>::kSentinel) {
    if (!source.packets) m.drop_minus_zeros(tile, piece.payload);
  }
}

/// Puts the sentinel back into a source that holds such packets.
template <PacketFormat F, class M>
MSCCLC_RUN inline void empty(M& m, const Source& source, const Piece& piece) {
  if (!source.packets) return;
  m.empty_packets(const_cast<uint8_t*>(source.address) + piece.unit * Format<F>::kWire,
                  piece.payload);
}

/// Stores a piece, and puts sentinels back into the slots that it was taken from. Stores come
/// first, as a peer may wait for them, unless the machine wants the order that a program must not
/// count on.
template <PacketFormat F, class M, class Store, class Empty>
MSCCLC_RUN inline void store_and_empty(M& m, Store store, Empty empty_sources) {
  static_assert(!always_before(Part::store, Part::empty) &&
                !always_before(Part::empty, Part::store));
  if constexpr (!Format<F>::kSentinel) {
    store();
  } else if constexpr (requires { m.empties_first(); }) {
    const bool first = m.empties_first();
    if (first) empty_sources();
    store();
    if (!first) empty_sources();
  } else {
    store();
    empty_sources();
  }
}

/// Reads a piece of every source and calls use(tile, first) for each, in written order.
template <PacketFormat F, class M, class P, class Use>
MSCCLC_RUN inline void gather(M& m, const P& p, const typename P::Stretch& s, const Piece& piece,
                              Use use) {
  auto walk = sources_of<F>(m, p, s, piece);
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
      use(tiles[i], first);
      first = false;
    }
  }
}

/// Empties the sources that gather() has read.
template <PacketFormat F, class M, class P>
MSCCLC_RUN inline void empty_all(M& m, const P& p, const typename P::Stretch& s,
                                 const Piece& piece) {
  for (auto walk = sources_of<F>(m, p, s, piece); walk.more();) empty<F>(m, walk.next(), piece);
}

/// Writes a piece to every destination of a move: plain, or as packets. `from`: where it lies if it
/// is only moved; a step of packets may hold a copy, in place onto itself, which is no access.
template <PacketFormat F, class M, class P>
MSCCLC_RUN inline void scatter(M& m, const P& p, const typename P::Stretch& s, const Piece& piece,
                               const typename M::Tile& tile, const uint8_t* from = nullptr) {
  for (uint32_t k = 0; k < dsts_of(s); ++k) {
    for (uint32_t member = 0; member < members_of(p, s, k); ++member) {
      uint8_t* address = address_of(m, p, s, k, member);
      if constexpr (F != PacketFormat::none) {
        if ((flags_of(p, s, k) & kPackets) != 0) {
          m.template write_packets<F>(address, piece, tile);
          continue;
        }
      }
      if (address + piece.offset != from) m.store(address + piece.offset, piece, tile);
    }
  }
}

}  // namespace mscclc::device
