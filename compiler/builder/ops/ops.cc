#include "compiler/builder/ops/ops.h"

#include <fmt/format.h>

#include <vector>

#include "ir/program/flag_regions.h"
#include "ir/verify/row_faults.h"

namespace mscclc {
namespace {

/// The name of the first or last op that `info` is made of.
OpKind part_of(const OpInfo& info, bool last) {
  const std::string_view parts = info.made_of;
  const size_t space = last ? parts.rfind(' ') : parts.find(' ');
  return *find_op(last ? parts.substr(space + 1) : parts.substr(0, space));
}

}  // namespace

bool Ops::add(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
              const OpOptions& options) {
  if (budget_.gave_up() || !draft_.ready()) return false;
  const OpInfo& info = table_[static_cast<size_t>(kind)];
  OperandFacts facts;
  facts.add(dsts);
  facts.add(srcs);
  if (facts.any(kInvalidTrait)) return false;
  if (facts.any(kExternalTrait)) return refuse_external(dsts, srcs);
  const Fit fit = op_checks_.check(info, dsts, srcs, facts, options);
  if (fit == Fit::wrong) return false;
  // A block whose ops turn out to have nothing to do is not a mistake.
  if (places_.block() != kNone) places_.use_block(places_.block());
  if (fit == Fit::nothing) return true;
  if (info.moves_data()) {
    if (!chunk_checks_.check(info, dsts, srcs, facts, options)) return false;
    if (facts.least == 0) return without_empty(kind, dsts, srcs, options);
    if (fit != Fit::whole) return reduce_less(info, dsts, srcs, options, fit);
    if (!info.has(kApplies) && !check_types(kind, dsts, srcs)) return false;
    if (kind == OpKind::copy && !draft_.flat && dsts[0].operand == srcs[0].operand) return true;
  }
  if ((info.effects & (kSignals | kWaits)) != 0 && !op_checks_.check_partners(info, dsts)) {
    return false;
  }
  if (info.has_flags() && !check_flags(kind, dsts)) return false;
  append(kind, dsts, srcs, options);
  return !budget_.gave_up();
}

/// What the structure check would say of the op, at the operand that is meant.
bool Ops::check_flags(OpKind kind, std::span<const Ref> flags) {
  for (const Ref& ref : flags) {
    const auto fault = flag_op_fault(draft_.program, kind, places_.loop(), {&ref.operand, 1});
    if (!fault) continue;
    reports_.fail("op-flags", ref.mark, *fault);
    return false;
  }
  return true;
}

/// What the structure check would say of what its rows are made of.
bool Ops::check_types(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs) {
  if (draft_.program.contract.columns == 0) return true;
  std::vector<Operand> to, from;
  for (const Ref& ref : dsts) to.push_back(ref.operand);
  for (const Ref& ref : srcs) from.push_back(ref.operand);
  const auto fault =
      types_fault(draft_.program, draft_.rank, kind, places_.loop() != kNone, to, from);
  if (fault) reports_.fail(fault->code, {}, fault->message);
  return !fault;
}

/// Reports an external in an op that is no `apply`: a def may bring it there.
bool Ops::refuse_external(std::span<const Ref> dsts, std::span<const Ref> srcs) {
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if ((ref.traits & kExternalTrait) == 0) continue;
      const rows::External& e = draft_.program.externals[ref.operand.buffer];
      reports_.fail("wrong-kind", ref.mark,
                    fmt::format("'{}' is an external, which only 'apply' takes", e.name));
      return false;
    }
  }
  return false;
}

void Ops::append(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                 const OpOptions& options) {
  const size_t n = dsts.size() + srcs.size();
  if (!budget_.add_op(draft_.program.operands.size() + n)) return;
  if ((dsts.size() | srcs.size()) > kMaxOperands) {  // which has all its bits set
    reports_.fail("too-many-operands", {}, fmt::format("more than {} operands", kMaxOperands));
    return;
  }
  tallies_.use(table_[static_cast<size_t>(kind)], dsts);
  Op& op = draft_.out->ops.emplace_back();
  op.kind = kind;
  op.reduce = options.reduce;
  op.relaxed = options.relaxed;
  op.summation = options.summation;
  op.complete = options.complete;
  op.part = static_cast<uint16_t>(options.part);
  op.parts = static_cast<uint16_t>(options.parts);
  op.dsts = static_cast<uint16_t>(dsts.size());
  op.srcs = static_cast<uint16_t>(srcs.size());
  op.block = places_.block();
  op.group = places_.group();
  op.loop = places_.loop();
  op.locations = locations_.present();
  Operand* to = draft_.program.operands.add(n, op.operands);
  for (const Ref& ref : dsts) *to++ = ref.operand;
  for (const Ref& ref : srcs) *to++ = ref.operand;
}

/// A reduction with empty operand lists: without far destinations it is the op without them, with
/// one source a copy.
bool Ops::reduce_less(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      OpOptions options, Fit fit) {
  const OpKind kind = fit == Fit::one_source ? info.kind : part_of(info, false);
  if (fit == Fit::no_far) {
    append(kind, dsts, srcs, options);
  } else {
    options.reduce = ReduceOp::call;
    options.summation = Summation::in_turn;
    options.complete = false;
    spread(mscclc::info(kind), dsts, srcs[0], options);
  }
  return !budget_.gave_up();
}

/// A reduction of one source: its destinations get a copy, made by the ops it is a fusion of.
void Ops::spread(const OpInfo& info, std::span<const Ref> dsts, const Ref& src,
                 const OpOptions& options) {
  if (info.made_of.empty()) {
    if (dsts[0].operand != src.operand) append(OpKind::copy, dsts, {&src, 1}, options);
    return;
  }
  // The last part serves the operands of the last slot, from the op's first destination.
  const OpInfo& rest = mscclc::info(part_of(info, false));
  spread(rest, dsts.first(rest.dsts.count), src, options);
  const std::span<const Ref> far = dsts.subspan(rest.dsts.count);
  const std::vector<Ref> results(far.size(), dsts[0]);
  append(part_of(info, true), far, results, options);
}

/// Leaves out operands without chunks (rows of alltoallv).
bool Ops::without_empty(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                        const OpOptions& options) {
  if (!info(kind).srcs.slot[0].pairwise) return true;
  std::vector<Ref> some_dsts, some_srcs;
  for (size_t i = 0; i < dsts.size(); ++i) {
    if (dsts[i].operand.count == 0) continue;
    some_dsts.push_back(dsts[i]);
    some_srcs.push_back(srcs[i]);
  }
  if (!some_dsts.empty()) append(kind, some_dsts, some_srcs, options);
  return true;
}

}  // namespace mscclc
