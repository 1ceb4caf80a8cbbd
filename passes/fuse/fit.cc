// fit: cuts ops that are larger than the target takes, so that nothing has to be refused for the
// size of one op. Runs before `fuse`, which joins ops as far as the limits allow. With limits of
// four operands and two channels:
//
//   wait up[1], up[2], up[3]               =>  wait up[1], up[2]
//                                              wait up[3]
//
//   reduce_send d, up[1].d, up[2].d        =>  reduce d <- a, b, c, e
//               <- a, b, c, e, f               reduce_send d, up[1].d, up[2].d <- d, f
//
// A sum is added up in the same order; in types narrower than their sums, it is rounded once more
// where it is cut. What cannot be cut is left as it is, for the target to refuse:
//  - a sum that is a tree, or exact,
//  - a sum that overwrites one of its later sources (where the caller's buffers may coincide, too),
//  - a sum of the caller's chunks in scratch: without them its parts would be as long as scratch
//  is,
//  - packet sums whose plain source does not stand among the first ones,
//  - what reads or writes packets of a sentinel buffer twice: a slot is filled and read but once,
//  - barriers.
#include <algorithm>
#include <vector>

#include "passes/framework/op_size.h"
#include "passes/framework/passes.h"

namespace mscclc {
namespace {

using OperandList = std::vector<Operand>;

class Fitter {
 public:
  Fitter(Program& program, const OpLimits& limits) : program_(program), limits_(limits) {}

  /// Returns how many ops have been cut.
  uint64_t run(uint32_t rank) {
    rank_ = rank;
    out_.clear();
    uint64_t cut = 0;
    std::vector<Op>& ops = program_.ranks[rank].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op op = ops[i];
      const size_t before = out_.size();
      if (!fits(op)) cut_op(op);
      if (out_.size() == before) out_.push_back(op);
      cut += out_.size() > before + 1;
    }
    if (cut != 0) ops.swap(out_);
    return cut;
  }

 private:
  ChannelKind channel(const Op& op) const { return channel_kind(program_, rank_, op); }
  size_t most(const Op& op) const { return most_operands(limits_, op.kind, channel(op)); }

  bool fits(const Op& op) const {
    return std::max(op.dsts, op.srcs) <= most(op) && !mixes_sources(op);
  }

  bool mixes_sources(const Op& op) const {
    if (!wants_one_source_kind(limits_, op.kind, channel(op))) return false;
    const std::span<const Operand> srcs = program_.srcs(op);
    return std::ranges::any_of(srcs, [&](const Operand& o) { return kind(o) != kind(srcs[0]); });
  }

  BufferKind kind(const Operand& o) const { return buffer_kind(program_, rank_, o); }

  void cut_op(const Op& op) {
    const OpInfo& row = info(op.kind);
    if (row.has(kMeets) || row.has(kApplies)) return;
    if (row.has(kReduces)) return cut_sum(op);
    if (row.dsts.slot[0].many) cut_list(op);
  }

  void add(Op op, OpKind kind, std::span<const Operand> dsts, std::span<const Operand> srcs) {
    op.kind = kind;
    program_.set_operands(op, dsts, srcs);
    out_.push_back(op);
  }

  /// Ops that do the same with each destination: runs of as many as may be.
  void cut_list(const Op& op) {
    const OpInfo& row = info(op.kind);
    const OperandList dsts(program_.dsts(op).begin(), program_.dsts(op).end());
    const OperandList srcs(program_.srcs(op).begin(), program_.srcs(op).end());
    const bool one_source = srcs.size() == 1 && !row.srcs.slot[0].pairwise;
    if (one_source && is_sentinel(format_of(srcs[0]))) return;
    const bool by_kind = mixes_sources(op);
    const size_t limit = most(op);
    for (size_t begin = 0, end = 0; begin < dsts.size(); begin = end) {
      end = std::min(begin + limit, dsts.size());
      for (size_t i = begin + 1; by_kind && i < end; ++i) {
        if (kind(srcs[i]) != kind(srcs[begin])) end = i;
      }
      const std::span<const Operand> to(dsts.data() + begin, end - begin);
      if (srcs.empty() || one_source) {
        add(op, op.kind, to, srcs);
      } else {
        add(op, op.kind, to, {srcs.data() + begin, end - begin});
      }
    }
  }

  PacketFormat format_of(const Operand& o) const { return program_.buffer_of(rank_, o).packets; }

  /// What a sum is without the places that it goes to besides its first destination.
  static OpKind plain_sum(OpKind kind) {
    if (info(kind).cost == CostClass::kPacket) return OpKind::reduce_packets;
    const bool reads = kind == OpKind::read_reduce || kind == OpKind::read_reduce_send;
    return reads ? OpKind::read_reduce : OpKind::reduce;
  }

  /// Sums of the first sources, then of the sum so far and more; the last one also goes to far
  /// ends. What it cannot take of these are puts after it.
  void cut_sum(const Op& op) {
    const OperandList dsts(program_.dsts(op).begin(), program_.dsts(op).end());
    const OperandList srcs(program_.srcs(op).begin(), program_.srcs(op).end());
    const size_t limit = most(op);
    if (limit < 2 || (srcs.size() > limit && !can_cut_sources(op, limit))) return;
    if (dsts.size() > limit && is_sentinel(format_of(dsts.back()))) return;
    size_t next = std::min(limit, srcs.size());
    OperandList some(srcs.begin(), srcs.begin() + static_cast<std::ptrdiff_t>(next));
    Op part = op;
    part.complete = false;
    part.applied = {};  // to the whole sum only
    while (next < srcs.size()) {
      add(part, plain_sum(op.kind), {dsts.data(), 1}, some);
      const size_t end = std::min(next + limit - 1, srcs.size());
      some.assign(1, dsts[0]);
      for (; next < end; ++next) some.push_back(srcs[next]);
    }
    const size_t kept = std::min(limit, dsts.size());
    // Of two destinations none is a far end where the sum is kept as packets, too.
    const bool sends = op.kind != OpKind::reduce_copy_send_packets || kept > 2;
    add(op, sends ? op.kind : OpKind::reduce_copy_packets, {dsts.data(), kept}, some);
    cut_sends(op, {dsts.data() + kept, dsts.size() - kept});
  }

  /// Puts of the sum at far ends, which all hold packets, or none does.
  void cut_sends(const Op& op, std::span<const Operand> far) {
    if (far.empty()) return;
    const bool packets = format_of(far.front()) != PacketFormat::none;
    Op put = op;
    put.kind = packets ? OpKind::put_packets : OpKind::put;
    put.reduce = ReduceOp::call;
    put.summation = Summation::in_turn;
    put.complete = false;
    put.applied = {};
    const size_t limit = most_operands(limits_, put.kind, ChannelKind::memory);
    const Operand sum = program_.dsts(op)[0];
    for (size_t begin = 0; begin < far.size(); begin += limit) {
      const std::span<const Operand> to = far.subspan(begin, std::min(limit, far.size() - begin));
      add(put, put.kind, to, OperandList(to.size(), sum));
    }
  }

  bool can_cut_sources(const Op& op, size_t limit) const {
    if (op.summation != Summation::in_turn) return false;
    const std::span<const Operand> srcs = program_.srcs(op);
    if (srcs[0].channel != kNone || op.dsts == 0 || program_.dsts(op)[0].channel != kNone) {
      return false;  // at a switch
    }
    if (program_.dsts(op)[0].buffer >= kFirstScratch && has_callers_chunk(op)) return false;
    bool plain = info(op.kind).cost != CostClass::kPacket;
    for (size_t i = 0; i < limit; ++i) plain |= format_of(srcs[i]) == PacketFormat::none;
    return plain && std::ranges::none_of(srcs.subspan(limit), [&](const Operand& o) {
             return may_overlap(program_.dsts(op)[0], o);
           });
  }

  bool has_callers_chunk(const Op& op) const {
    const auto is_callers = [](const Operand& o) { return o.buffer < kFirstScratch; };
    return std::ranges::any_of(program_.dsts(op), is_callers) ||
           std::ranges::any_of(program_.srcs(op), is_callers);
  }

  /// May the sum be the same memory as one of its sources?
  bool may_overlap(const Operand& sum, const Operand& source) const {
    if (source.channel != kNone) return false;
    int64_t shift = 0;
    if (sum.buffer != source.buffer) {
      const Contract& contract = program_.contract;
      if (sum.buffer >= kFirstScratch || source.buffer >= kFirstScratch) return false;
      if (contract.in_place == InPlace::no || !contract.can_alias()) return false;
      const auto alias = contract.alias(rank_);
      if (!alias) return false;
      shift = int64_t{alias->output_chunk} - alias->input_chunk;  // from input to output
      if (source.buffer == kOutput) shift = -shift;
    }
    const int64_t first = source.first + shift;
    return first < int64_t{sum.first} + sum.count && int64_t{sum.first} < first + source.count;
  }

  Program& program_;
  const OpLimits& limits_;
  uint32_t rank_ = 0;
  std::vector<Op> out_;
};

}  // namespace

bool run_fit(Program& program, PassContext& context) {
  if (context.limits == OpLimits{}) return true;  // most targets
  Fitter fitter(program, context.limits);
  uint64_t cut = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) cut += fitter.run(r);
  context.count("ops cut", cut);
  return true;
}

}  // namespace mscclc
