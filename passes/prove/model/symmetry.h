// Is a plan its own image when all ranks are renumbered, r to r + step? Then what holds of ranks
// 0 .. step - 1 holds of all, and only these need to be run: a ring of a thousand ranks is as cheap
// as one rank. docs/design/proofs.md has the argument.
//
// The renumbering is found by comparing rank 0 with the rank `step` further on, and then checked op
// by op at every rank; if anything differs, it is none. It moves chunks as well: chunk c of a
// buffer becomes c + distance, modulo the ranks' chunks.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::proof {

class Symmetry {
 public:
  /// No renumbering: every rank stands for itself.
  explicit Symmetry(const Program& program) : step_(static_cast<uint32_t>(program.ranks.size())) {}
  /// The one with the smallest step; plans with switches or counts (alltoallv) are not looked at.
  /// REQUIRES: program.split.
  static Symmetry find(const Program& program);

  /// Ranks below it stand for all: rank r + k step is r, turned k times.
  uint32_t step() const { return step_; }
  /// How many turns bring every rank back.
  uint32_t turns() const { return turns_; }
  bool trivial() const { return turns_ == 1; }
  /// What becomes of a chunk of a buffer after `turns` turns.
  uint32_t chunk(uint32_t buffer, uint32_t chunk, uint32_t turns) const {
    if (turns == 0) return chunk;
    const Rotation& r = rotations_[buffer];
    const uint32_t within = chunk % r.modulus;
    return chunk - within +
           static_cast<uint32_t>((within + uint64_t{r.distance} * turns) % r.modulus);
  }
  /// What becomes of a class of equally long chunks (Contract::size_class).
  uint64_t size_class(uint64_t size_class, uint32_t turns) const;
  /// Does a class turn into itself, at all ranks?
  bool keeps(uint64_t size_class) const;

 private:
  struct Rotation {
    uint32_t modulus = 1, distance = 0;
    bool operator==(const Rotation&) const = default;
  };
  struct InOrbit {
    uint32_t orbit, position;
  };
  friend class SymmetryFinder;

  uint32_t step_ = 0, turns_ = 1;
  std::vector<Rotation> rotations_;  ///< by buffer
  std::unordered_map<uint64_t, InOrbit> classes_;
  std::vector<std::vector<uint64_t>> orbits_;  ///< classes in the order in which they turn
};

}  // namespace mscclc::proof
