// Which stored values were computed from which: the chains along which a store that depends on a
// value cannot overtake the loads that gave it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "passes/prove/finding.h"

namespace mscclc::proof {

/// Where among an op's operands: which pair of a pairwise op, and which chunk of the operands.
struct Position {
  uint32_t pair = 0, chunk = 0;
  bool operator==(const Position&) const = default;
};

/// Every stored value of a run, in the order in which they were stored.
class ValueChains {
 public:
  struct Node {
    Event event;
    uint32_t rank;
    Position position;
    uint32_t first, count;  ///< of its parents
  };

  explicit ValueChains(size_t processes) : by_process_(processes) {}

  /// What `event` of `rank` stores at `position`, made from `parents`.
  uint32_t add(const Event& event, uint32_t rank, Position position,
               const std::vector<uint32_t>& parents);
  const Node& node(uint32_t i) const { return nodes_[i]; }
  size_t size() const { return nodes_.size(); }
  std::span<const uint32_t> parents(const Node& node) const {
    return {parents_.data() + node.first, node.count};
  }
  /// Values of one op in the order in which they were stored.
  std::span<const uint32_t> stored_by(const Event& event) const;

 private:
  std::vector<Node> nodes_;
  std::vector<uint32_t> parents_;
  std::vector<std::vector<uint32_t>> by_process_;
};

/// Values that somebody has read, and all that they were made of, however indirectly. Found out
/// when it is asked for, and each value once.
class Provenance {
 public:
  void add(uint32_t value) { read_.push_back(value); }
  void add(const Provenance& other) {
    read_.insert(read_.end(), other.read_.begin(), other.read_.end());
  }
  void clear();
  size_t size() const { return read_.size(); }
  const std::vector<uint32_t>& values() const { return read_; }
  /// Was the load by `event` of `rank` at `position` over before one of the first `count` values
  /// could be made: do they come from what that op stored of it, or from a later call of the rank?
  /// REQUIRES: `count` does not shrink between two clear().
  bool follow(const ValueChains& chains, size_t count, const Event& event, uint32_t rank,
              Position position);

  /// Do the first `count` values come from what `rank` stored in a call later than `call`?
  /// REQUIRES: as follow().
  bool follow_later(const ValueChains& chains, size_t count, uint32_t rank, uint32_t call);

 private:
  void look_back(const ValueChains& chains, size_t count);
  void look_at(const ValueChains& chains, uint32_t value);

  std::vector<uint32_t> read_;
  size_t looked_at_ = 0;           ///< so many of read_
  std::vector<uint32_t> origins_;  ///< of these: they and their ancestors
  std::vector<bool> is_origin_;    ///< by value
  std::vector<uint32_t> calls_;    ///< by rank: one more than the last call that is among them
};

}  // namespace mscclc::proof
