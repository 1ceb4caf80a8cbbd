// The rules of fusing: which two ops of one place become which one. A rule says left op, right op,
// how they hang together (the form), and the op they become. Most rules follow from the op table
// (fuse_rule_table.cc).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/fuse/reorder/fuse_order.h"

namespace mscclc::fusion {

enum class Form : uint8_t {
  join,      ///< the same op twice: pairs, channels or semaphores one after the other
  fan,       ///< both forward the same packets: one source, all destinations
  sum,       ///< d <- a, b; d <- d, c: one sum, in the same order. A copy is a sum of one; only
             ///< that goes with a tree, as a tree of three is not one of two and then another one,
             ///< and with an exact sum
  send,      ///< the right op moves on what the left one has just made; both are kept
  forward,   ///< the same with packets that the left one has kept; kept if others read them
  queue,     ///< put, signal, flush on the same ports
  through,   ///< the left op only moves: the right one takes from where it took; scratch is gone
  retarget,  ///< the right op only moves: the left one writes where it wrote; scratch is gone
  exchange,  ///< the sum over a switch is stored to all: the local chunk is gone
  rows,  ///< the right op applies a row function to the left one's sum: it is handed over before
         ///< it is stored, rounded as it would have been
};

struct Rule {
  OpKind left, right;
  Form form;
  OpKind result;
};

/// All rules. Those of one pair of ops stand together; the first that matches is taken.
std::span<const Rule> rules();
/// The rules of a pair of ops.
std::span<const Rule> rules(OpKind left, OpKind right);
/// Left ops with a rule for this right op, as bits by OpKind.
KindBits lefts_of(OpKind right);
/// "reduce + put -> reduce_send"
std::string print_rule(const Rule& rule);

/// An op as it is now.
struct View {
  OpKind kind;
  ReduceOp reduce;
  bool relaxed;
  Summation summation;
  std::span<const Operand> dsts, srcs;
  Slice applied;
  bool in_loop;
};

/// What a rule makes of two ops, if the order of things allows it.
struct Match {
  OpKind result;
  Flow flow;
  /// Chunks (or packet slots) that nothing writes any more: only the right op may have read them.
  std::span<const Operand> gone;
  /// Chunks that are written less far than before, with the same condition.
  std::span<const Operand> shorter;
  /// Form::through: how often the fused op reads each source of the left one.
  uint32_t reads = 1;
  /// Form::forward: these packets need not be kept if only the right op reads them.
  bool keeps_packets = true;
  ReduceOp reduce = ReduceOp::call;
};

/// Operands of a fused op while it is being put together.
struct Operands {
  std::vector<Operand> dsts, srcs;
};

/// Matches and builds, for ops of one rank.
class Matcher {
 public:
  explicit Matcher(const Program& program) : program_(program) {}
  void start(uint32_t rank) { rank_ = rank; }
  /// Do the operands match the rule? Says nothing about what is written between the ops.
  bool match(const Rule& rule, const View& left, const View& right, Match& match) const;
  /// Makes the operands of the fused op. `to` holds those of the left op, and receives the result.
  void build(const Rule& rule, const Match& match, const View& right, Operands& to) const;

 private:
  bool match_join(const View& left, const View& right) const;
  bool match_sum(const Rule& rule, const View& left, const View& right, Match& match) const;
  bool match_send(const Rule& rule, const View& left, const View& right, Match& match) const;
  bool sends_rows(const Rule& rule, const View& left, const View& right) const;
  bool match_forward(const Rule& rule, const View& left, const View& right, Match& match) const;
  bool match_queue(const View& left, const View& right, Match& match) const;
  bool match_through(const Rule& rule, const View& left, const View& right, Match& match) const;
  bool match_retarget(const Rule& rule, const View& left, const View& right, Match& match) const;
  bool match_exchange(const View& left, const View& right, Match& match) const;
  bool match_rows(const Rule& rule, const View& left, const View& right, Match& match) const;

  bool is_scratch(const Operand& o) const;
  bool takes(OpKind kind, const Operand& o) const;
  PacketFormat format(const View& op) const;
  ChannelKind channel_kind(const Operand& o) const;
  /// The first chunk of input or output, or nullptr.
  const Operand* callers_chunk(std::span<const Operand> operands) const;
  const Operand* callers_chunk(const View& op) const;
  /// True if both are equally long for every message, as far as that is known.
  bool same_size(const Operand* a, const Operand* b) const;
  bool fits_slots(OpKind kind, const Operands& operands) const;

  const Program& program_;
  uint32_t rank_ = 0;
  mutable Operands trial_;
};

}  // namespace mscclc::fusion
