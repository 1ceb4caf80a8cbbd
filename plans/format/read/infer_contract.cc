// The contract that a plan of MSCCL++ implies: its `collective`, chunk counts and `inplace`.
#include <fmt/format.h>

#include "plans/format/read/data_origins.h"
#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

/// How many places up every rank writes, if all remote writes of the plan go equally far; else 0.
uint32_t find_distance(const Program& program) {
  const uint32_t ranks = static_cast<uint32_t>(program.ranks.size());
  uint32_t shift = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    bool sends = false;
    for (const Op& op : program.ranks[r].ops) {
      if (!info(op.kind).moves_data()) continue;
      for (const Operand& o : program.dsts(op)) {
        if (o.channel == kNone) continue;
        const Channel& channel = program.ranks[r].channels[o.channel];
        if (channel.kind == ChannelKind::switch_) return 0;
        const uint32_t distance = (channel.peer + ranks - r) % ranks;
        if (shift != 0 && distance != shift) return 0;
        shift = distance;
        sends = true;
      }
    }
    if (!sends) return 0;
  }
  return shift;
}

/// How many places up every rank sends, if it is the same for all; else 0. Ranks that pass data on
/// write less far than it goes.
int64_t find_shift(const Program& program) {
  const uint32_t distance = find_distance(program);
  if (distance == 0) return 0;
  DataOrigins origins(program);
  if (!origins.follow()) return 0;
  return origins.passed_on() ? origins.shift() : distance;
}

class Inference {
 public:
  Inference(ReadState& state, NodeId collective)
      : state_(state),
        contract_(state.program.contract),
        node_(collective),
        ranks_(static_cast<uint32_t>(state.ranks.size())) {}

  bool run(std::string_view name, bool in_place) {
    contract_.ranks = ranks_;
    contract_.in_place = in_place ? InPlace::yes : InPlace::no;
    contract_.even_only = true;
    if (ranks_ == 0) return state_.fail(node_, "the plan has no ranks");
    input_ = state_.ranks[0].chunks[0];
    output_ = state_.ranks[0].chunks[1];
    if (name == "allreduce") return fits(CollectiveKind::allreduce, input_, input_, output_);
    if (name == "allgather") {
      return fits(CollectiveKind::allgather, input_, input_, uint64_t{input_} * ranks_);
    }
    if (name == "reducescatter") {
      return fits(CollectiveKind::reducescatter, output_, uint64_t{output_} * ranks_, output_);
    }
    if (name == "alltoall") {
      return fits(CollectiveKind::alltoall, input_ / ranks_, input_ / ranks_ * ranks_, input_);
    }
    return name == "sendrecv" ? infer_sendrecv() : infer_custom();
  }

 private:
  /// Sets kind and chunks if all ranks have these chunk counts.
  bool fits(CollectiveKind kind, uint32_t chunks, uint64_t input, uint64_t output) {
    contract_.kind = kind;
    contract_.chunks = {chunks};
    if (chunks == 0) {
      return state_.fail(node_, fmt::format("{} chunks do not divide by {} ranks", input_, ranks_));
    }
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (const size_t t : {0, 1}) {
        const uint64_t wanted = t == 0 ? input : output;
        if (state_.ranks[r].chunks[t] == wanted) continue;
        return state_.fail(state_.ranks[r].chunk_nodes[t],
                           fmt::format("is {}; '{}' over {} ranks makes it {}",
                                       state_.ranks[r].chunks[t], name(kind), ranks_, wanted));
      }
    }
    return true;
  }

  bool infer_sendrecv() {
    const int64_t shift = find_shift(state_.program);
    if (shift == 0) return infer_custom();
    // Send and receive have no in-place form.
    contract_.in_place = InPlace::no;
    contract_.shift = shift;
    return fits(CollectiveKind::sendrecv, input_, input_, input_);
  }

  /// Of other collectives only the chunk counts are known: nothing is promised.
  bool infer_custom() {
    contract_.kind = CollectiveKind::custom;
    contract_.input = {input_};
    contract_.output = {output_};
    for (const WireRank& rank : state_.ranks) {
      for (const size_t t : {0, 1}) {
        if (rank.chunks[t] == (t == 0 ? input_ : output_)) continue;
        return state_.fail(rank.chunk_nodes[t], "differs from that of rank 0");
      }
    }
    return true;
  }

  ReadState& state_;
  Contract& contract_;
  NodeId node_;
  uint32_t ranks_;
  uint32_t input_ = 0, output_ = 0;
};

}  // namespace

bool infer_contract(ReadState& state, NodeId collective, std::string_view name, bool in_place) {
  return Inference(state, collective).run(name, in_place);
}

}  // namespace mscclc
