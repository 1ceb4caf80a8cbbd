// Which bytes of a chunk an op touches: all of them, or one piece of a way to cut the chunk (the
// parts of a group op, the rounds of a pipeline). Two pieces of one way of cutting are the same
// bytes or none in common, for every message size. Pieces of different ways have boundaries that
// depend on the size, so that nothing is known: they may overlap. Calls may be of different sizes,
// so pieces of different calls are pieces of different ways.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

struct Extent {
  uint32_t way = 0;    ///< 0: the whole chunk
  uint32_t piece = 0;  ///< which of the way's pieces
  /// Of a unit of scratch: which loops use it there. Where others left off depends on the number of
  /// rounds, so their units are any (lemma R3).
  uint32_t turn = 0;
  bool sure = true;  ///< it has bytes, however small the message
  bool operator==(const Extent& o) const {
    return way == o.way && piece == o.piece && turn == o.turn;
  }

  bool whole() const { return way == 0; }
  bool may_touch(const Extent& o) const {
    return !premise(Premise::divisions_overlap, way == o.way) ||
           !premise(Premise::uses_of_a_unit_overlap, turn == o.turn) || whole() || piece == o.piece;
  }
  /// True if every byte of `o` is one of these.
  bool covers(const Extent& o) const { return whole() || *this == o; }
};

/// What an op divides data into that is cut into parts.
struct CutUnit {
  uint32_t data = 0;     ///< bytes of data in a unit of its packets; 0: it moves none
  uint32_t element = 0;  ///< bytes of an element, of rows of another type than the call's; else 0
};

/// The ways in which a program's ops cut chunks, numbered from 1.
class Cuts {
 public:
  /// `rounds`: by loop of the program, how many rounds are run.
  Cuts(const Program& program, std::vector<uint32_t> rounds)
      : program_(program), rounds_(std::move(rounds)) {}

  uint32_t rounds(uint32_t loop) const { return rounds_[loop]; }
  /// Piece of the `k`-th chunk of operands with `count` chunks that `op` touches in a round of call
  /// `instance`. `units`: so many units of a pipeline are all that the chunk holds; 0: it holds
  /// every round's.
  Extent extent(const Op& op, const CutUnit& unit, uint32_t k, uint32_t count, uint32_t round,
                uint32_t units, uint64_t instance) {
    if (op.parts == 0 && op.loop == kNone) return {};
    Key key{op.parts,
            premise(Premise::formats_divide_differently, unit.data, uint32_t{0}),
            premise(Premise::types_divide_differently, unit.element, uint32_t{0}),
            k,
            count,
            0,
            units,
            premise(Premise::calls_divide_differently, instance, uint64_t{0})};
    uint32_t piece = op.parts == 0 ? 0 : op.part, pieces = op.parts == 0 ? 1 : op.parts;
    if (op.loop != kNone) {
      std::get<5>(key) = program_.loops[op.loop].unit;
      piece += (units == 0 ? round : round % units) * pieces;
      pieces *= units == 0 ? rounds_[op.loop] : units;
    }
    return {
        .way = way(key, pieces), .piece = piece, .sure = unit.data != 0 && has_bytes(op, k, count)};
  }
  /// How many pieces a way has.
  uint32_t pieces(uint32_t way) const { return way == 0 ? 1 : pieces_[way - 1]; }

 private:
  /// Lemma O2: does the part of a packet op over `count` slots reach into the k-th, even
  /// if each of them has one unit?
  static bool has_bytes(const Op& op, uint32_t k, uint32_t count) {
    if (op.loop != kNone) return false;  // there are no packets in pipelines
    if (op.part == 0 && premise(Premise::the_first_part_has_the_first_slot, k == 0)) return true;
    return premise(Premise::slots_divide_evenly, count % op.parts == 0) &&
           k / (count / op.parts) == op.part;
  }

  using Key =
      std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t, uint64_t>;
  uint32_t way(const Key& key, uint32_t pieces) {
    if (last_way_ != 0 && key == last_) return last_way_;
    const auto [entry, added] = ways_.try_emplace(key, static_cast<uint32_t>(ways_.size() + 1));
    if (added) pieces_.push_back(pieces);
    last_ = key;
    last_way_ = entry->second;
    return last_way_;
  }

  const Program& program_;
  std::vector<uint32_t> rounds_;
  std::map<Key, uint32_t> ways_;
  std::vector<uint32_t> pieces_;
  Key last_{};
  uint32_t last_way_ = 0;
};

/// Collects extents, and says when they make up another. Most often there is one way of at most 64
/// pieces.
class Covering {
 public:
  Covering(const Cuts& cuts, const Extent& wanted) : cuts_(cuts), wanted_(wanted) {}
  /// Adds an extent; true as soon as every byte of the wanted one is in one of those added.
  bool add(const Extent& extent) {
    if (extent.covers(wanted_)) return true;
    const uint32_t pieces = cuts_.pieces(extent.way);
    if (pieces <= 64 && (way_ == 0 || way_ == extent.way)) {
      way_ = extent.way;
      found_ |= uint64_t{1} << extent.piece;
      return premise(Premise::pieces_count_once, found_ == ~uint64_t{0} >> (64 - pieces));
    }
    if (others_ == nullptr) others_ = std::make_unique<Pieces>();
    std::set<uint32_t>& others = (*others_)[extent.way];
    others.insert(extent.piece);
    return others.size() == pieces;
  }

 private:
  using Pieces = std::map<uint32_t, std::set<uint32_t>>;

  const Cuts& cuts_;
  const Extent wanted_;
  uint32_t way_ = 0;
  uint64_t found_ = 0;              ///< pieces of way_
  std::unique_ptr<Pieces> others_;  ///< pieces, by way
};

}  // namespace mscclc::proof
