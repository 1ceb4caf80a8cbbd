// What the choice of a plan depends on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/contract/collectives.h"
#include "ir/contract/order.h"
#include "ir/ops/dtypes.h"
#include "ir/program/proof.h"
#include "ir/support/link_kind.h"
#include "ir/support/precondition.h"

namespace mscclc {

/// A call, as far as the choice depends on it. The same on all ranks.
struct LibraryCall {
  CollectiveKind kind;
  uint32_t ranks = 0;
  uint64_t bytes = 0;  ///< the larger of input and output of a rank, as in `select sizes`
  Dtype dtype = Dtype::f32;
  bool in_place = false;
  uint32_t root = 0;                     ///< matters where the collective has a root
  int64_t shift = 1;                     ///< matters for sendrecv; any number, as ranks go round
  std::optional<Dtype> accumulate = {};  ///< type to add up in; default: the data type's own
  ReduceOp op = ReduceOp::sum;           ///< ignored by collectives that reduce nothing
  LinkKind links = LinkKind::nvlink;     ///< the worst of any two ranks (Communicator::worst_link)
  /// How many nodes; each has ranks_per_node() ranks whose numbers follow one another. 0: the
  /// ranks are spread in another way.
  uint32_t nodes = 1;
  SumOrder order = kDefaultOrder;  ///< what the bits of its sums must keep to
  /// Some ranks may be in place and others not: the plan must be right both ways. Then `in_place`
  /// is true.
  bool either_place = false;
  bool captured = false;  ///< its stream is captured into a graph

  uint32_t ranks_per_node() const { return nodes == 0 ? 0 : ranks / nodes; }
  bool operator==(const LibraryCall&) const = default;
};

/// A program with parameters, as FILE of a command may be: "allreduce_push:R=8,B=128".
inline std::string program_text(const std::string& program,
                                const std::vector<std::pair<std::string, std::string>>& defines) {
  std::string text = program;
  for (const auto& [key, value] : defines) {
    text += (text.size() == program.size() ? ':' : ',') + key + '=' + value;
  }
  return text;
}

/// The rank to which rank 0 of so many sends by a shift. REQUIRES: there is one.
inline int64_t receiver_of_0(int64_t shift, uint32_t ranks) {
  precondition(ranks > 0);
  const int64_t n = ranks;
  return (shift % n + n) % n;
}

/// A call as a job asks for it that makes it by name: with a root there are ranks that have one
/// buffer and do not know whether the others are in place.
inline LibraryCall as_jobs_ask(LibraryCall call) {
  call.either_place = info(call.kind).can_alias && has_root(call.kind);
  call.in_place = call.in_place || call.either_place;
  return call;
}

/// Is something rounded on the way to the results of a call? Not in minima and maxima, nor in sums
/// of integers, which wrap alike wherever they do; but averages of these divide what may have
/// wrapped in their own type, if they are added up in a wider one.
inline bool rounds_sums(const LibraryCall& call) {
  const DtypeInfo& type = info(call.dtype);
  const bool adds = info(call.kind).adds_up() && !is_extremum(call.op);
  const bool wider = call.op == ReduceOp::avg && call.accumulate.value_or(call.dtype) != call.dtype;
  return adds && (type.kind == DtypeKind::kFloat || wider) && call.order != SumOrder::any;
}

/// Do the bits of a call depend on the order in which its sums are added? One sum of two elements,
/// rounded once, is the same in every order, and is the exact one: f32 has more than twice the
/// digits of the types that are added up in it.
inline bool order_matters(const LibraryCall& call) { return call.ranks > 2 && rounds_sums(call); }

/// Do the sums of a plan keep to the call's order, in its type? Sums that ops pass on in a type
/// that is narrower than what they are added up in are rounded there, too, and keep `replicated` at
/// most. What a switch adds up keeps no order, of two ranks neither; what is moved through sentinel
/// packets loses -0.0, so ranks may have other bits.
inline bool keeps_order(const Proof& proof, const LibraryCall& call) {
  if (!info(call.kind).adds_up()) {
    return info(call.dtype).kind != DtypeKind::kFloat || proof.orders.keep(call.order);
  }
  if (!rounds_sums(call)) return true;
  const bool once = proof.rounding != Rounding::each_op;
  if (info(call.dtype).kind != DtypeKind::kFloat) return once;
  if (!proof.orders.keep(call.order)) return false;
  if (call.order == SumOrder::replicated || once || !order_matters(call)) return true;
  return !rounds_on_the_way(call.dtype, call.accumulate.value_or(info(call.dtype).accumulate));
}

/// The order that the call asks for, if it is more than `replicated` and they keep to it; else the
/// strongest that they keep to in such a call.
inline SumOrder strongest_order(const Proof& proof, LibraryCall call) {
  if (call.order > SumOrder::replicated && keeps_order(proof, call)) return call.order;
  for (const SumOrder order :
       {SumOrder::exact, SumOrder::tree, SumOrder::ranks, SumOrder::replicated}) {
    call.order = order;
    if (keeps_order(proof, call)) return order;
  }
  return SumOrder::any;
}

/// ", in place", or "" where input and output lie apart.
inline const char* placement_text(const LibraryCall& call) {
  return call.either_place ? ", in place or not" : call.in_place ? ", in place" : "";
}

}  // namespace mscclc
