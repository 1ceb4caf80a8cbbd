// What the extra key says about the ops of a rank: marks, exceptions from what their names mean,
// and locations.
#include <fmt/format.h>

#include <algorithm>

#include "ir/program/applied.h"
#include "plans/format/read/read_state.h"
#include "plans/format/wire/location_codec.h"

namespace mscclc {
namespace {

class NoteReader {
 public:
  NoteReader(ReadState& state, uint32_t rank)
      : state_(state), json_(state.json), ops_(state.program.ranks[rank].ops), rank_(rank) {}

  bool read() {
    const bool foreign = state_.program.foreign;
    const KnownWord odd[] = {foreign ? w_fixed_sum : w_from_call,
                             foreign ? w_plain_last : w_plain_first};
    for (const KnownWord key : odd) {
      const NodeId node = state_.extra_node(rank_, key);
      if (node != kNoNode) return json_.fail(node, "does not go with 'foreign'");
    }
    return for_ops(w_complete, [](Op& op, size_t) { return mark(op, &Op::complete); }) &&
           read_summations() &&
           for_ops(foreign ? w_from_call : w_fixed_sum,
                   [&](Op& op, size_t i) { return change_reduction(op, i); }) &&
           move_plain_sources(foreign ? w_plain_first : w_plain_last) && read_channels() &&
           read_applied();
  }

 private:
  /// Calls `apply(op, index)` for the ops of an ascending list; it returns false if the op is none
  /// that the list is about.
  template <class Apply>
  bool for_ops(KnownWord key, Apply apply) {
    const NodeId list = state_.extra_node(rank_, key);
    if (list == kNoNode) return true;
    int64_t last = -1;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      uint32_t index = 0;
      if (!json_.number(e, index)) return false;
      if (index >= ops_.size()) {
        return json_.fail(e, fmt::format("{} is not an op (there are {})", index, ops_.size()));
      }
      if (index <= last) return json_.fail(e, "the list does not ascend");
      last = index;
      if (!apply(ops_[index], index)) {
        return json_.fail(e, fmt::format("does not go with '{}'", info(ops_[index].kind).name));
      }
    }
    return true;
  }

  /// An op adds up in one way.
  bool read_summations() {
    for (const SummationInfo& row : summations()) {
      const auto note = [&](Op& op, size_t) {
        if (!info(op.kind).has(kReduces) || op.summation != Summation::in_turn) return false;
        op.summation = row.summation;
        return true;
      };
      if (!for_ops(row.summation == Summation::tree ? w_tree : w_exact, note)) return false;
    }
    return true;
  }

  static bool mark(Op& op, bool Op::*flag) {
    op.*flag = true;
    return info(op.kind).has(kReduces);
  }

  /// A reduction with its wire name that is not what such ops of this plan are.
  bool change_reduction(Op& op, size_t index) {
    op.reduce = state_.program.foreign ? ReduceOp::call : ReduceOp::sum;
    return info(op.kind).has(kReduces) && state_.op_is_long[rank_][index] == 0;
  }

  bool is_packet_sum(const Op& op, size_t index) const {
    return info(op.kind).moves_data() && info(op.kind).srcs.slot[0].floating &&
           state_.op_is_long[rank_][index] == 0;
  }

  /// On the wire the plain source of a packet sum is first. In the IR it is where it is added: at
  /// the end in a plan of MSCCL++, in front in ours, the other way round for the ops in the list.
  bool move_plain_sources(KnownWord key) {
    const bool foreign = state_.program.foreign;
    std::vector<bool> listed(ops_.size());
    if (!for_ops(key, [&](Op& op, size_t i) {
          listed[i] = true;
          return is_packet_sum(op, i);
        })) {
      return false;
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (listed[i] == foreign || !is_packet_sum(ops_[i], i)) continue;
      Operand* const srcs = state_.program.operands.at(ops_[i].operands) + ops_[i].dsts;
      std::rotate(srcs, srcs + 1, srcs + ops_[i].srcs);
    }
    return true;
  }

  /// Rows `[op, channels…]`: the channels of an op's remote chunks.
  bool read_channels() {
    const NodeId list = state_.extra_node(rank_, w_op_channels);
    if (list == kNoNode) return true;
    std::vector<uint32_t> row;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.numbers(e, row)) return false;
      if (row.empty() || row[0] >= ops_.size() || !info(ops_[row[0]].kind).moves_data()) {
        return json_.fail(e, "begins with no op that moves data");
      }
      if (!set_channels(ops_[row[0]], {row.data() + 1, row.size() - 1})) {
        return json_.fail(e, "does not list the channels of the op");
      }
    }
    return true;
  }

  bool set_channels(const Op& op, std::span<const uint32_t> channels) {
    const std::vector<Channel>& all = state_.program.ranks[rank_].channels;
    for (uint32_t k = 0; k < uint32_t{op.dsts} + op.srcs; ++k) {
      Operand& o = state_.program.operands.at(op.operands)[k];
      if (o.channel == kNone) continue;
      if (channels.empty() || channels[0] >= all.size()) return false;
      const Channel &before = all[o.channel], &now = all[channels[0]];
      if (now.kind != before.kind || now.peer != before.peer) return false;
      o.channel = channels[0];
      channels = channels.subspan(1);
    }
    return channels.empty();
  }

  /// Rows `[op, values…]`: what an op applies, see Applied; what they say is checked later.
  bool read_applied() {
    const NodeId list = state_.extra_node(rank_, w_applied);
    if (list == kNoNode) return true;
    std::vector<int64_t> row;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.integers(e, row)) return false;
      const bool op = !row.empty() && row[0] >= 0 && row[0] < static_cast<int64_t>(ops_.size());
      if (!op || !may_apply(info(ops_[static_cast<size_t>(row[0])].kind))) {
        return json_.fail(e, "begins with no op that applies a row function");
      }
      ops_[static_cast<size_t>(row[0])].applied = state_.program.append(std::span(row).subspan(1));
    }
    return true;
  }

  ReadState& state_;
  const JsonReader& json_;
  std::vector<Op>& ops_;
  uint32_t rank_;
};

bool read_locations(ReadState& state) {
  LocationReader locations(state.program, state.bytes);
  const JsonReader& json = state.json;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const NodeId list = state.extra_node(r, w_loc);
    if (list == kNoNode) continue;
    locations.begin_rank(state.program.ranks[r].ops);
    for (NodeId e = json.first(list); e != json.end(list); e = json.next(e)) {
      int64_t number = 0;
      if (!json.i64(e, number)) return false;
      if (const char* wrong = locations.take(number)) return json.fail(e, wrong);
    }
    if (const char* wrong = locations.end()) return json.fail(list, wrong);
  }
  return true;
}

}  // namespace

bool read_notes(ReadState& state) {
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    if (!NoteReader(state, r).read()) return false;
  }
  return read_locations(state);
}

}  // namespace mscclc
