#include "tests/explore/rows_apart.h"

#include <span>
#include <vector>

#include "ir/program/applied.h"

namespace mscclc {
namespace {

class Parting {
 public:
  explicit Parting(const Program& program) : from_(program), to_(program) {}

  Program run() && {
    for (uint32_t r = 0; r < to_.ranks.size(); ++r) {
      ops_.clear();
      for (const Op& op : from_.ranks[r].ops) {
        if (applies(op) && !info(op.kind).has(kApplies)) {
          part(r, op);
        } else {
          ops_.push_back(op);
        }
      }
      to_.ranks[r].ops = ops_;
    }
    return std::move(to_);
  }

 private:
  /// The op of the same sources that stores its sum in one place only.
  static OpKind sum_of(OpKind kind) {
    if (info(kind).has(kPolls)) return OpKind::reduce_packets;
    const bool far = kind == OpKind::read_reduce || kind == OpKind::read_reduce_send;
    return far ? OpKind::read_reduce : OpKind::reduce;
  }

  void add(Op op, OpKind kind, std::span<const Operand> dsts, std::span<const Operand> srcs) {
    op.kind = kind;
    op.relaxed = false;
    if (!info(kind).has(kReduces)) {
      op.reduce = ReduceOp::call;
      op.summation = Summation::in_turn;
      op.complete = false;
    }
    if (!info(kind).has(kApplies)) op.applied = {};
    if (!info(kind).moves_data()) op.part = op.parts = 0;
    to_.set_operands(op, dsts, srcs);
    ops_.push_back(op);
  }

  void part(uint32_t rank, const Op& op) {
    const std::span<const Operand> dsts = from_.dsts(op), own = dsts.first(1);
    add(op, sum_of(op.kind), own, from_.srcs(op));
    add(op, OpKind::sync, {}, {});
    add(op, OpKind::apply, own, own);
    if (dsts.size() > 1) add(op, OpKind::sync, {}, {});
    for (size_t i = 1; i < dsts.size(); ++i) {
      const bool packets = from_.buffer_of(rank, dsts[i]).packets != PacketFormat::none;
      const OpKind far = packets ? OpKind::put_packets : OpKind::put;
      add(op, dsts[i].channel == kNone ? OpKind::copy_packets : far, dsts.subspan(i, 1), own);
    }
  }

  const Program& from_;
  Program to_;
  std::vector<Op> ops_;
};

}  // namespace

Program rows_apart(const Program& program) { return Parting(program).run(); }

}  // namespace mscclc
