// The orders between blocks that a rank lacks, each a release after one op and an acquire before
// another; and how few of them will do. What others imply goes; blocks that all wait for each other
// at one place have a barrier there instead.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "passes/order/block_run.h"

namespace mscclc::order {

/// A release after one op and the acquire before another that takes it.
struct OrderEdge {
  uint32_t from, to;          ///< blocks
  uint32_t loop;              ///< the pipeline that both stand in, or kNone
  uint32_t release, acquire;  ///< ops after and before which to synchronise
  bool operator==(const OrderEdge&) const = default;
};

/// A barrier to insert: the ops before which its blocks meet.
struct Meeting {
  std::vector<uint32_t> ops;
  bool whole_loop;  ///< in front of the pipeline that they begin
};

class OrderEdges {
 public:
  void start();
  /// Adds an order, or makes one with the same acquire ask for more.
  void add(const OrderEdge& edge);
  /// Drops edges that others into the same place imply. `run`: of the rank, at its end.
  void drop_implied(const Rank& rank, const BlockRun& run);
  /// Takes out edges between blocks that all wait for each other between two neighbouring ops each:
  /// a barrier there orders the same, with one op a block instead of two.
  void take_meetings(const Rank& rank, const BlockSequence& order, std::vector<Meeting>& out);
  const std::vector<OrderEdge>& all() const { return edges_; }

 private:
  void sort();
  std::span<const OrderEdge> into(uint32_t acquire, uint32_t loop) const;
  std::vector<uint32_t> find_clique(const Rank& rank, const BlockSequence& order,
                                    const OrderEdge& edge) const;

  std::vector<OrderEdge> edges_;
  /// By acquire, loop, and the block that is waited for.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> of_acquire_;
  std::vector<OrderEdge> sorted_;  ///< by acquire and loop
};

}  // namespace mscclc::order
